"""Files that ship with Cohort, in a clone or an installed package's folder `bundle`: Snakefile,
config, papers' values, releases. One at the same path in the working folder takes precedence."""

from pathlib import Path

PACKAGE = Path(__file__).parents[1]
IS_INSTALLED = (PACKAGE / "bundle").is_dir()
ROOT = PACKAGE / "bundle" if IS_INSTALLED else PACKAGE.parents[1]
SNAKEFILE = str(ROOT / "Snakefile")
CONFIG = Path("config")
CONFIG_FILE = CONFIG / "config.yaml"


def shipped(path: str | Path) -> Path:
    """The path itself, or that of Cohort's own copy if only the latter exists."""
    built_in = ROOT / path
    return built_in if built_in.exists() and not Path(path).exists() else Path(path)
