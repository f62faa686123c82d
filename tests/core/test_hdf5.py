"""A sealed file that changed after it was written is never read: a flipped bit, a cut, a lost
page."""

import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cohort.core import hdf5
from cohort.core.errors import FIXES, FileAccessError, UserError
from cohort.core.hdf5 import DAMAGED, SEAL_BYTES, new_hdf5
from cohort.data import shards, store
from cohort.records import record
from cohort.records.history import History

RNG = np.random.default_rng(8)
FLIPS = 200
FOREIGN = "it does not begin like a file of this program"
HEADER = {
    "format": 1,
    "digest": "k0123456789ab",
    "status": "done",
    "settings": {"clients": 3, "rounds": 2},
    "science": {"fedavg": 1},
    "weights_sha256": "0" * 64,
    "provenance": {
        **{"versions": {"torch": "2"}, "commit": "unknown", "trainer": "serial"},
        **{"devices": ["a cpu"], "sessions": [{"from_round": 0}], "peak_memory_mb": 1.5},
    },
}


def write_record(path: Path) -> None:
    history = History(cohorts=[np.array([0, 2]), np.array([1, 2])])
    history.add_metrics(2, test_accuracy=0.5)
    clients = {name: RNG.random(3) for name in record.CLIENT_ARRAYS}
    clients["label_counts"] = RNG.integers(0, 9, (3, 4))
    classes = {"tested": np.arange(4), "right": np.arange(4)}
    record.write(path, record.Record(HEADER, history, clients, classes))


def write_shards(path: Path) -> None:
    indices = np.split(RNG.permutation(60), [20, 20])
    shards.write(path, shards.Shards(indices, RNG.integers(0, 9, (3, 4)), validation=np.arange(5)))


def write_data(path: Path) -> None:
    with new_hdf5(path) as file:
        file.attrs.update({"format": store.FORMAT, "classes": 4, "scale": 255.0, "mean": [0.5]})
        for split, count in (("train", 40), ("test", 9)):
            file[f"{split}/values"] = RNG.integers(0, 256, (count, 1, 4, 4), dtype=np.uint8)
            file[f"{split}/labels"] = RNG.integers(0, 4, count).astype(np.uint16)


def read_data(path: Path) -> Any:
    return [store.read(path, "train"), store.read(path, "test"), store.read_labels(path)]


def as_plain(value: Any) -> Any:
    """Anything that a reader gives, so that it can be compared bit by bit."""
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, np.ascontiguousarray(value).tobytes())
    if isinstance(value, dict):
        return {key: as_plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(part) for part in value]
    return as_plain(vars(value)) if hasattr(value, "__dataclass_fields__") else value


Kind = tuple[Callable[[Path], None], Callable[[Path], Any], str]
KINDS: dict[str, Kind] = {
    "record": (write_record, record.read, "is not a valid record ({}); records are files like"),
    "shards": (write_shards, shards.read, "cannot be read as shards ({}); delete it and start"),
    "data": (write_data, read_data, "cannot be read as prepared data ({}); delete it and start"),
}


@pytest.fixture(params=[1 << 20, 100], ids=["small arrays", "large arrays"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Path of a file to write, once with a separate checksum for its arrays and once without."""
    monkeypatch.setattr(hdf5, "LARGE", request.param)
    return tmp_path / "file.h5"


def assert_refused(kind: str, path: Path, *reasons: str) -> None:
    with pytest.raises(UserError) as caught:
        KINDS[kind][1](path)
    assert "\n" not in str(caught.value)
    sentences = [f"{path} {KINDS[kind][2].format(reason)}" for reason in reasons]
    assert any(str(caught.value).startswith(sentence) for sentence in sentences)


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_found_wherever_it_is(kind: str, path: Path):
    write, read, _ = KINDS[kind]
    write(path)
    good, expected = path.read_bytes(), as_plain(read(path))
    for offset in [*RNG.integers(0, SEAL_BYTES, 50), *RNG.integers(SEAL_BYTES, len(good), FLIPS)]:
        bad = bytearray(good)
        bad[offset] ^= 1 << RNG.integers(8)
        path.write_bytes(bad)
        try:
            # a flip in the seal may be harmless
            assert as_plain(read(path)) == expected and offset < SEAL_BYTES, offset
        except UserError as error:
            assert str(error).startswith(f"{path} {KINDS[kind][2].partition('{')[0]}")


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_file_a_longer_one_and_a_lost_page_are_found(kind: str, path: Path):
    KINDS[kind][0](path)
    good = path.read_bytes()
    for length in (0, 1, 20):
        path.write_bytes(good[:length])
        assert_refused(kind, path, FOREIGN)
    changed = [good[:length] for length in RNG.integers(SEAL_BYTES, len(good), 20)]
    for begin in range(0, len(good), 512):
        page = bytes(len(good[begin : begin + 512]))
        changed.append(good[:begin] + page + good[begin + 512 :])
    for content in (good[:-1], good + b"\0", *changed):
        path.write_bytes(content)
        if content != good:
            assert_refused(kind, path, DAMAGED, FOREIGN)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO])
def test_a_file_that_the_system_does_not_let_read_is_not_to_be_deleted(
    kind: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It may be whole. Root may read everything, so the system's answer is imitated."""
    write, read, _ = KINDS[kind]
    path = tmp_path / "file.h5"
    write(path)

    def refuse(file: Any, *arguments: Any) -> Any:
        raise OSError(code, "words of the system", str(file))

    monkeypatch.setattr(hdf5, "open", refuse, raising=False)
    with pytest.raises(FileAccessError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: {FIXES[code]}")
    assert "delete" not in str(caught.value)
    if kind == "record":
        with pytest.raises(FileAccessError):  # or training would begin anew
            record.is_valid(path)
