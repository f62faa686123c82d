"""`cohort init`: a folder in which Snakemake runs Cohort, without a clone."""

import argparse
import shlex
import shutil
from pathlib import Path

from cohort.core.errors import UserError, explain_errors
from cohort.core.files import write_text
from cohort.core.shipped import CONFIG_FILE, ROOT

SNAKEFILE = Path("workflow/Snakefile")
CONTENT = '''"""Cohort's rules, from the installed package. Yours can stand below."""

from cohort.core.shipped import SNAKEFILE


configfile: "config/config.yaml"


module cohort:
    snakefile:
        SNAKEFILE
    config:
        config


use rule * from cohort
'''
COPIED = (str(CONFIG_FILE), "profiles")
LINK = "slurm"  # to the profile of that name, for --profile slurm


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the folder of the new workflow."""
    text = "the folder to make, or one without a Snakefile, config or profiles"
    parser.add_argument("folder", type=Path, metavar="DIR", help=text)


def run(options: argparse.Namespace) -> None:
    """Write a Snakefile, the config and the profiles into a folder; keep what exists."""
    folder: Path = options.folder
    for name in (str(SNAKEFILE), "Snakefile", *COPIED, LINK):
        if (folder / name).exists():
            raise UserError(f"{folder / name} exists already; name another folder")
    with explain_errors(folder):
        write_text(folder / SNAKEFILE, CONTENT)
        write_text(folder / CONFIG_FILE, (ROOT / CONFIG_FILE).read_text(encoding="utf-8"))
        shutil.copytree(ROOT / "profiles", folder / "profiles")
        (folder / LINK).symlink_to(f"profiles/{LINK}")
    go = shlex.join(["cd", str(folder)])
    print(f"written: {folder}. The demo, 36 small runs: {go} && snakemake")
