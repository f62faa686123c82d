"""`cohort draw`: preview a study from the records and checkpoints that exist."""

import argparse

from cohort.commands.shared import add_whole_studies, load_plan
from cohort.pipeline.preview import draw_studies

add_arguments = add_whole_studies


def run(options: argparse.Namespace) -> None:
    """Draw the studies from what exists and print the paths of their pages."""
    plan = load_plan(options)
    print(*draw_studies(plan, list(dict.fromkeys(plan.listed))), sep="\n")
