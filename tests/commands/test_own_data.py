"""A data set of the user's own whose file no longer is what datasets.yaml declares."""

import hashlib
from pathlib import Path

import numpy as np
import pytest
import yaml

from cohort.commands.cli import main
from cohort.commands.run import make_data
from cohort.core.errors import UserError
from cohort.plan import load
from tests.commands.conftest import STUDY


def test_own_data_that_changed_since_they_were_added(project: Path):
    """Refused by the file that declares them; a raw file of an older entry is not taken for them."""
    np.savez("own.npz", x=np.arange(60.0).reshape(20, 3), y=np.arange(20) % 2)
    study = STUDY | {"settings": STUDY["settings"] | {"dataset": "own", "reserve": 1}}
    Path("config/studies/own.yaml").write_text(yaml.safe_dump(study))
    config = yaml.safe_load(Path("config/config.yaml").read_text())
    Path("config/config.yaml").write_text(yaml.safe_dump(config | {"studies": "own"}))
    main(["data", "add", "own", "own.npz"])  # although a listed study names them already
    stored = Path("my/data/own.npz")
    before = stored.read_bytes()
    stored.write_bytes(before + b"more")
    with pytest.raises(UserError, match=r"^my/data/own.npz: SHA-256 is .*, datasets.yaml exp"):
        make_data(plan := load({"studies": "own"}), next(iter(plan.data.values())).path)
    stored.write_bytes(before)
    entry = Path("my/datasets.yaml").read_text()
    Path("my/datasets.yaml").write_text(entry.replace(hashlib.sha256(before).hexdigest(), "f" * 64))
    with pytest.raises(UserError, match=r"my/data/own.npz: SHA-256 is"):
        make_data(plan := load({"studies": "own"}), next(iter(plan.data.values())).path)
