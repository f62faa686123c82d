"""Run the command line: `python -m cohort`."""

from cohort.commands.cli import main

if __name__ == "__main__":
    main()
