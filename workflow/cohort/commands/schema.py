"""`cohort schema`: the JSON Schema of study files, for editors."""

import argparse
import json

from cohort.plan.loading import unexpanded_plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add nothing: the command takes no arguments."""


def run(options: argparse.Namespace) -> None:
    """Print the JSON Schema of studies; a broken one does not prevent that, since none is read."""
    print(json.dumps(unexpanded_plan().study_schema(), indent=1))
