"""An unusable checkpoint is not used: the run resumes from the previous one or starts anew; leases,
and records that are published."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from cohort.core.files import lock
from cohort.records.history import History
from cohort.training.job import checkpoint
from cohort.training.job.checkpoint import load_history, save
from cohort.training.job.lease import LEASE, is_held, lease, publish, was_abandoned
from cohort.training.task import RunState

CPU = torch.device("cpu")
BEGUN = RunState(
    {"w": torch.zeros(2)}, {"w": torch.zeros(2)}, {"loss": np.zeros(2), "buffer": np.empty(0)}
)
RNG = np.random.default_rng(3)


def state(rounds: int = 2) -> RunState:
    history = History(cohorts=[np.array([2, round % 2]) for round in range(rounds)])
    history.add_metrics(2, test_accuracy=0.5)
    history.add_cost(1, seconds=0.25)
    selector = {"loss": np.array([np.inf, 1.0]), "buffer": np.arange(3.0)}
    weights = {"w": torch.tensor([1.0, -0.0])}
    progress = history, rounds, False, [{"from_round": 0}]
    return RunState(weights, {"w": torch.ones(2)}, selector, *progress)


def load(path: Path, digest: str = "k1", like: RunState = BEGUN) -> RunState | None:
    loaded = checkpoint.load(path, digest, like, CPU)
    return None if loaded is None else loaded[0]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A checkpoint of round 3, and the previous one of round 2."""
    file = tmp_path / "checkpoint.safetensors"
    save(file, state(2), "k1")
    save(file, state(3), "k1")
    return file


@pytest.fixture
def previous(path: Path) -> Path:
    return path.with_name("checkpoint.previous.safetensors")


def test_a_saved_state_is_read_back(path: Path, previous: Path):
    loaded = load(path)
    assert loaded is not None and loaded.round == 3 and not loaded.diverged
    assert loaded.sessions == [{"from_round": 0}]
    assert loaded.weights["w"].numpy().tobytes() == state().weights["w"].numpy().tobytes()
    assert loaded.server["w"].tolist() == [1, 1]
    assert loaded.selector["loss"].tolist() == [np.inf, 1.0]
    assert dict(loaded.history.metrics) == {"test_accuracy": [(2, 0.5)]}
    assert dict(loaded.history.cost) == {"seconds": [(1, 0.25)]}
    assert np.array_equal(loaded.history.cohorts, [[2, 0], [2, 1], [2, 0]])
    assert sorted(path.parent.iterdir()) == [previous, path]
    (path.parent / "new").touch()
    assert path.stat().st_mode == (path.parent / "new").stat().st_mode  # as the umask says


def test_every_flipped_bit_and_wrong_length_is_found(path: Path):
    good = path.read_bytes()
    contents = [good[:length] for length in range(len(good))]
    for index in range(len(good)):
        bad = bytearray(good)
        bad[index] ^= 1 << RNG.integers(8)
        contents.append(bytes(bad))
    for content in [*contents, good + b"\0"]:
        path.write_bytes(content)
        with pytest.raises(checkpoint.Unusable):
            checkpoint._read(path)


def test_the_previous_checkpoint_replaces_a_damaged_one(
    path: Path, previous: Path, capsys: pytest.CaptureFixture[str]
):
    path.write_bytes(path.read_bytes()[:-9])
    assert len(load_history(path).cohorts) == 2
    loaded = load(path)
    assert loaded is not None and loaded.round == 2 and path.exists() and not previous.exists()
    output = capsys.readouterr().out
    assert output.startswith(f"{path} is not used, because it cannot be read (")
    assert output.endswith("; the checkpoint before it is, of round 2\n")
    assert output.count("\n") == 1
    save(path, state(4), "k1")  # the damaged one never becomes the previous one
    path.unlink()
    assert load(path).round == 2


def test_with_two_damaged_checkpoints_the_run_starts_anew(
    path: Path, previous: Path, capsys: pytest.CaptureFixture[str]
):
    for file in (path, previous):
        file.write_bytes(bytes(len(file.read_bytes())))
    assert load(path) is None and load_history(path) is None
    output = capsys.readouterr().out
    assert str(path) in output and str(previous) in output
    assert output.endswith("; the run begins anew\n") and output.count("\n") == 1
    for file in (path, previous):
        file.unlink()
    assert load(path) is None and capsys.readouterr().out == ""


@pytest.mark.parametrize("fatal", [1, 2])
def test_a_kill_at_either_rename(fatal: int, path: Path, monkeypatch: pytest.MonkeyPatch):
    """At each of the two renames of a save, one whole checkpoint exists."""
    replace, targets = Path.replace, []

    def killed(self: Path, target: Path) -> None:
        targets.append(target)
        if len(targets) == fatal:
            raise KeyboardInterrupt
        replace(self, target)

    monkeypatch.setattr(Path, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        save(path, state(4), "k1")
    monkeypatch.undo()
    assert len(load_history(path).cohorts) == 3
    assert load(path).round == 3


def rewritten(path: Path, tensors: dict[str, torch.Tensor], digest: str = "k1") -> None:
    """Write a checkpoint of round 3 with some other tensors and a correct checksum."""
    header, content = checkpoint._read(path)
    flat = {
        f"{part}/{name}": tensor
        for part, group in content.items()
        for name, tensor in group.items()
    } | tensors
    text = json.dumps(header | {"digest": digest})
    save_file(flat, path, {"facts": text, "sha256": checkpoint._checksum(text, flat)})


OTHERS: dict[str, tuple[dict[str, torch.Tensor], str, str]] = {
    "cell": ({}, "k2", "it is of the cell k2"),
    "shape": ({"weights/w": torch.ones(3)}, "k1", "its tensors are not those"),
    "type": ({"weights/w": torch.ones(2).double()}, "k1", "its tensors are not those"),
    "memory": ({"selector/v": torch.ones(2)}, "k1", "its tensors are not those"),
    "reports": ({"reports/v": torch.ones(2)}, "k1", "its tensors are not those"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_checkpoint_of_another_form_is_not_used(
    name: str, path: Path, capsys: pytest.CaptureFixture[str]
):
    tensors, digest, reason = OTHERS[name]
    rewritten(path, tensors, digest)
    loaded = load(path)
    assert loaded is not None and loaded.round == 2
    output = capsys.readouterr().out
    assert f"{path} is not used, because {reason}" in output and output.count("\n") == 1


def test_a_lease_is_held_then_gone_and_stays_of_a_run_that_failed(tmp_path: Path):
    folder = tmp_path / "state"
    with lease(folder, waiting=lambda: pytest.fail("nobody has it")):
        assert is_held(folder) and not was_abandoned(folder)
    assert not (folder / LEASE).exists() and not was_abandoned(folder)
    with pytest.raises(KeyError), lease(folder, waiting=lambda: None):
        raise KeyError
    assert was_abandoned(folder) and not is_held(folder)
    with lock(folder / LEASE):
        assert not was_abandoned(folder)


def test_a_published_record_stays_where_it_was_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    finished, published = tmp_path / "finished.h5", tmp_path / "record.h5"
    for content in (b"one", b"two"):
        finished.write_bytes(content)
        publish(finished, published)
        assert finished.read_bytes() == published.read_bytes() == content
        finished.unlink()
    finished.write_bytes(b"three")
    monkeypatch.setattr("os.link", lambda *paths: (_ for _ in ()).throw(OSError))
    publish(finished, published)
    assert finished.read_bytes() == published.read_bytes() == b"three"
