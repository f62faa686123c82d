"""Run the command line: `python -m cohort`, or `cohort`."""

from cohort.commands.cli import main
from cohort.core.process import leave


def run() -> None:
    """Run a command in a process of its own."""
    main()
    leave()


if __name__ == "__main__":
    run()
