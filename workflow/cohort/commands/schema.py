"""`cohort schema`: the JSON Schema of study files, for editors."""

from __future__ import annotations

import argparse

from cohort.commands.screen import print_json
from cohort.plan.loading import unexpanded


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """There are none."""


def run(options: argparse.Namespace) -> None:
    """Print the schema. No study is read, so it can be had to mend a broken one."""
    print_json(unexpanded().study_schema())
