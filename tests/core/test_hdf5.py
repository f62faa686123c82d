"""A sealed file that changed since is never read: a flipped bit, a cut, a lost page."""

import contextlib
import errno
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cohort.core import hdf5
from cohort.core.errors import FIXES, FileAccessError, UserError
from cohort.core.hdf5 import DAMAGED, SEAL_BYTES, SealedFile, new_hdf5
from cohort.data import shards, store
from cohort.records import record

RNG = np.random.default_rng(8)
FOREIGN = "it does not begin like a file of this program"
READERS: dict[str, tuple[Callable[[Path], Any], str]] = {
    "record": (record.read, "cannot be read as a record ({}); delete it and run"),
    "shards": (shards.read, "cannot be read as shards ({}); delete it and run"),
    "data": (store.read_labels, "cannot be read as prepared data ({}); delete it and run"),
}


@pytest.fixture(params=[1 << 20, 100], ids=["small arrays", "large arrays"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A sealed file, once with a separate checksum for its arrays and once without."""
    monkeypatch.setattr(hdf5, "LARGE", request.param)
    with new_hdf5(tmp_path / "file.h5") as file:
        file.attrs.update({"header": "{}", "scale": 255.0, "mean": [0.5]})
        file["train/values"] = RNG.integers(0, 256, (40, 1, 4, 4), dtype=np.uint8)
        file["train/labels"] = RNG.integers(0, 4, 40).astype(np.uint16)
        file["single"] = 7.0
    return tmp_path / "file.h5"


def content(path: Path) -> Any:
    with SealedFile(path) as file:
        arrays = [(name, array.dtype, array.tobytes()) for name, array in file.arrays().items()]
        return arrays, {name: np.asarray(value).tobytes() for name, value in file.attrs.items()}


def test_a_flipped_bit_is_found_wherever_it_is(path: Path):
    good, expected = path.read_bytes(), content(path)
    for offset in [*RNG.integers(0, SEAL_BYTES, 100), *RNG.integers(SEAL_BYTES, len(good), 400)]:
        bad = bytearray(good)
        bad[offset] ^= 1 << RNG.integers(8)
        path.write_bytes(bad)
        with contextlib.suppress(ValueError, KeyError, OverflowError, TypeError, OSError):
            # a flip in the seal may be harmless
            assert content(path) == expected and offset < SEAL_BYTES, offset


def test_more_large_arrays_than_the_seal_has_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The largest have a checksum of their own."""
    monkeypatch.setattr(hdf5, "LARGE", 100)
    with new_hdf5(path := tmp_path / "file.h5") as file:
        for number in range(50):
            file[f"array{number}"] = RNG.integers(0, 256, 1000 + number, dtype=np.uint8)
    with SealedFile(path) as sealed:
        assert 5 < len(sealed.large) < 50 and "array49" in sealed.large
    test_a_flipped_bit_is_found_wherever_it_is(path)


def test_a_cut_file_a_longer_one_and_a_lost_page_are_found(path: Path):
    good = path.read_bytes()
    changed = [good[:length] for length in (0, 1, 20, *RNG.integers(SEAL_BYTES, len(good), 20))]
    for begin in range(0, len(good), 512):
        page = bytes(len(good[begin : begin + 512]))
        changed.append(good[:begin] + page + good[begin + 512 :])
    for bad in (good[:-1], good + b"\0", *changed):
        path.write_bytes(bad)
        if bad != good:
            with pytest.raises(ValueError, match=f"{DAMAGED}|{FOREIGN}"):
                content(path)


@pytest.mark.parametrize("kind", READERS)
def test_readers_say_what_is_damaged_and_what_to_do(kind: str, path: Path):
    read, sentence = READERS[kind]
    good = path.read_bytes()
    for bad, reason in ((good[:20], FOREIGN), (good[:-1] + b"\xff", DAMAGED)):
        path.write_bytes(bad)
        with pytest.raises(UserError) as caught:
            read(path)
        assert str(caught.value).startswith(f"{path} {sentence.format(reason)}")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("read", [*(read for read, _ in READERS.values()), record.is_valid])
@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO])
def test_a_file_that_the_system_does_not_let_read_is_not_to_be_deleted(
    read: Callable[[Path], Any], code: int, path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It may be whole. Root may read everything, so the system's answer is imitated."""

    def refuse(file: Any, *arguments: Any) -> Any:
        raise OSError(code, "words of the system", str(file))

    monkeypatch.setattr(hdf5, "open", refuse, raising=False)
    with pytest.raises(FileAccessError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}: {FIXES[code]}")
    assert "delete" not in str(caught.value)
