"""A file that changed after it was written is never read: a flipped bit, a cut, a lost page. And
what an enemy's file may not do."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import zlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from cohort.core import hdf5
from cohort.core.errors import FIXES, FileAccessError, UserError
from cohort.core.hdf5 import SEAL_BYTES, new_hdf5
from cohort.data import shards, store
from cohort.records import record
from cohort.records.history import History

RNG = np.random.default_rng(8)
FLIPS = 400
HEADER = {
    "format": 1,
    "digest": "k0123456789ab",
    "status": "done",
    "settings": {"clients": 3, "rounds": 2},
    "science": {"fedavg": 1},
    "weights_sha256": "0" * 64,
    "provenance": {
        "versions": {"torch": "2"},
        "commit": "unknown",
        "trainer": "serial",
        "devices": ["a processor"],
        "sessions": [{"from_round": 0}],
        "peak_memory_mb": 1.5,
    },
}


def write_record(path: Path) -> None:
    history = History(cohorts=[np.array([0, 2]), np.array([1, 2])])
    history.add_metrics(2, test_accuracy=0.5)
    clients = {name: RNG.random(3) for name in record.CLIENT_ARRAYS} | {
        "label_counts": RNG.integers(0, 9, (3, 4))
    }
    record.write(
        path,
        record.Record(HEADER, history, clients, {"tested": np.arange(4), "right": np.arange(4)}),
    )


def write_shards(path: Path) -> None:
    with new_hdf5(path) as file:
        file["indices"], file["sizes"], file["label_counts"] = (
            RNG.permutation(60),
            np.array([20, 0, 40]),
            RNG.integers(0, 9, (3, 4)),
        )
        file["validation"] = np.arange(5)


def write_data(path: Path) -> None:
    with new_hdf5(path) as file:
        file.attrs.update(
            {
                "format": store.FORMAT,
                "classes": 4,
                "scale": 255.0,
                "mean": [0.5],
                "dataset": "noise",
            }
        )
        for split, count in (("train", 40), ("test", 9)):
            file[f"{split}/values"] = RNG.integers(0, 256, (count, 1, 4, 4), dtype=np.uint8)
            file[f"{split}/labels"] = RNG.integers(0, 4, count).astype(np.uint16)


def as_plain(value: Any) -> Any:
    """Anything that a reader gives, so that it can be compared bit by bit."""
    if isinstance(value, np.ndarray):
        return (str(value.dtype), value.shape, np.ascontiguousarray(value).tobytes())
    if isinstance(value, dict):
        return {key: as_plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [as_plain(part) for part in value]
    return as_plain(vars(value)) if hasattr(value, "__dataclass_fields__") else value


def read_data(path: Path) -> Any:
    return [
        as_plain(store.read(path, "train")),
        as_plain(store.read(path, "test")),
        as_plain(store.read_labels(path)),
    ]


Kind = tuple[Callable[[Path], None], Callable[[Path], Any], str]
KINDS: dict[str, Kind] = {
    "record": (
        write_record,
        record.read,
        "is not a valid record ({}); records are files like results/cells/.../seed0-k0123456789ab.h5",
    ),
    "shards": (
        write_shards,
        shards.read,
        "cannot be read as shards ({}); delete it and start again to deal it anew",
    ),
    "data": (
        write_data,
        read_data,
        "cannot be read as prepared data ({}); delete it and start again to prepare it anew",
    ),
}


@pytest.fixture(params=[1 << 20, 100], ids=["small arrays", "large arrays"])
def path(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Path of a file to write, once with a separate checksum for its arrays and once without."""
    monkeypatch.setattr(hdf5, "LARGE", request.param)
    return tmp_path / "file.h5"


def refused(kind: str, path: Path, reason: str = hdf5.DAMAGED) -> None:
    with pytest.raises(UserError) as caught:
        KINDS[kind][1](path)
    assert str(caught.value) == f"{path} {KINDS[kind][2].format(reason)}"


@pytest.mark.parametrize("kind", KINDS)
def test_a_flipped_bit_is_found_wherever_it_is(kind: str, path: Path):
    write, read, sentence = KINDS[kind]
    write(path)
    good, expected = path.read_bytes(), as_plain(read(path))
    places = sorted({*range(SEAL_BYTES), *RNG.integers(SEAL_BYTES, len(good), FLIPS).tolist()})
    actual = 0
    for offset in places:
        bad = bytearray(good)
        bad[offset] ^= 1 << RNG.integers(8)
        path.write_bytes(bad)
        try:
            assert as_plain(read(path)) == expected and offset < SEAL_BYTES, (
                offset
            )  # in the seal, and harmless there
        except UserError as error:
            assert str(error).startswith(
                f"{path} {sentence.partition('{')[0]}"
            ) and "\n" not in str(error)
            actual += 1
    assert actual >= len(places) - SEAL_BYTES


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_file_a_longer_one_and_a_lost_page_are_found(kind: str, path: Path):
    KINDS[kind][0](path)
    good = path.read_bytes()
    for length in {*RNG.integers(SEAL_BYTES, len(good), 30).tolist(), len(good) - 1}:
        path.write_bytes(good[:length])
        refused(kind, path)
    path.write_bytes(good + b"\0")
    refused(kind, path)
    for length in (0, 1, 20):
        path.write_bytes(good[:length])
        refused(kind, path, "it does not begin like a file of this program")
    for begin in range(0, len(good), 512):
        if any(good[begin : begin + 512]):
            path.write_bytes(
                good[:begin] + bytes(len(good[begin : begin + 512])) + good[begin + 512 :]
            )
            refused(
                kind,
                path,
                hdf5.DAMAGED if begin else "it does not begin like a file of this program",
            )


def test_labels_are_read_without_the_values(path: Path, monkeypatch: pytest.MonkeyPatch):
    """Dealing looks at no pixel, so none is summed up for it; each split's values are summed up
    when it is read, and no other's."""
    write_data(path)
    looked: list[int] = []
    monkeypatch.setattr(
        hdf5,
        "_crc",
        lambda stream, begin, size, crc=hdf5._crc: (looked.append(size), crc(stream, begin, size))[
            1
        ],
    )
    store.read_labels(path)
    assert looked == []
    store.read(path, "train")
    assert looked == ([40 * 16] if hdf5.LARGE == 100 else [])


def test_the_seal_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its checksums are those of the standard tools."""
    monkeypatch.setattr(hdf5, "LARGE", 1000)
    values = RNG.integers(0, 256, 1000, dtype=np.uint8)
    with new_hdf5(tmp_path / "a.h5") as file:
        file["small"], file["group/large"], file["other"] = np.arange(3), values, values[::-1]
    content = (tmp_path / "a.h5").read_bytes()
    seal = json.loads(content[:SEAL_BYTES])
    assert seal["large"]["group/large"] == [
        content.index(values.tobytes()),
        1000,
        zlib.crc32(values.tobytes()),
    ]
    rest = content[SEAL_BYTES:].replace(values.tobytes(), b"").replace(values[::-1].tobytes(), b"")
    assert seal["sha256"] == hashlib.sha256(rest).hexdigest()


PASSWORDS = "/etc/passwd"


@contextlib.contextmanager
def forged(path: Path) -> Iterator[h5py.File]:
    """A new HDF5 file with a right seal, whatever is put into it."""
    with h5py.File(path, "w", userblock_size=SEAL_BYTES) as file:
        yield file
    with open(path, "r+b") as stream:
        hdf5._seal(stream, {})


def soft(file: h5py.File, name: str) -> None:
    file[f"other/{name}"] = file[name][()]
    del file[name]
    file[name] = h5py.SoftLink(f"/other/{name}")


def external(file: h5py.File, name: str) -> None:
    with h5py.File("outside.h5", "w") as outside:
        outside[name] = file[name][()]
    del file[name]
    file[name] = h5py.ExternalLink("outside.h5", f"/{name}")


def external_bytes(file: h5py.File, name: str) -> None:
    shape, dtype = file[name].shape, file[name].dtype
    del file[name]
    file.create_dataset(name, shape, dtype, external=[(PASSWORDS, 0, h5py.h5f.UNLIMITED)])


def virtual(file: h5py.File, name: str) -> None:
    array = file[name][()]
    with h5py.File("outside.h5", "w") as outside:
        outside["array"] = array
    layout = h5py.VirtualLayout(array.shape, array.dtype)
    layout[...] = h5py.VirtualSource("outside.h5", "array", array.shape)
    del file[name]
    file.create_virtual_dataset(name, layout)


def huge(file: h5py.File, name: str) -> None:
    array = file[name][()]
    del file[name]
    file.create_dataset(name, (1 << 44, *array.shape[1:]), array.dtype)


def bomb(file: h5py.File, name: str) -> None:
    array = file[name][()]
    del file[name]
    file.create_dataset(
        name,
        (1 << 40, *array.shape[1:]),
        array.dtype,
        chunks=(1 << 16, *array.shape[1:]),
        compression="gzip",
    )


def references(file: h5py.File, name: str) -> None:
    count = len(file[name])
    del file[name]
    file.create_dataset(name, data=np.array([file.ref] * count, dtype=h5py.ref_dtype))


def texts(file: h5py.File, name: str) -> None:
    del file[name]
    file[name] = ["text"] * 3


def group(file: h5py.File, name: str) -> None:
    del file[name]
    file.create_group(name)


ENEMIES = (soft, external, external_bytes, virtual, huge, bomb, references, texts, group)
TARGETS = {
    "record": ["clients/size", "cohorts", "clients/label_counts"],
    "shards": ["indices", "label_counts"],
    "data": ["train/values", "train/labels"],
}


@pytest.mark.parametrize("enemy", ENEMIES, ids=lambda enemy: enemy.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_an_enemys_file_reads_nothing_outside_it_and_takes_no_room(
    kind: str, enemy: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A forged file with a valid checksum is refused for what it contains."""
    monkeypatch.chdir(tmp_path)
    write, read, sentence = KINDS[kind]
    for name in TARGETS[kind]:
        write(Path("new.h5"))
        with h5py.File("new.h5") as new, forged(Path("enemy.h5")) as file:
            for key in new:
                new.copy(key, file)
            file.attrs.update(new.attrs)
            enemy(file, name)
        with pytest.raises(UserError) as caught:
            read(Path("enemy.h5"))
        assert str(caught.value).startswith(
            f"enemy.h5 {sentence.partition('{')[0]}"
        ) and "\n" not in str(caught.value)


HEADERS: dict[str, Any] = {
    "deep": "[" * 200_000,
    "a list": "[]",
    "a number": 7,
    "bytes": np.void(b"\xff\xfe"),
    "clients as text": json.dumps(HEADER | {"settings": {"clients": "x", "rounds": 2}}),
    "rounds as text": json.dumps(HEADER | {"settings": {"clients": 3, "rounds": "x"}}),
    "no settings": json.dumps(HEADER | {"settings": {}}),
    "a thousand digits": json.dumps(HEADER | {"format": 10**1000}),
    "five thousand digits": json.dumps(HEADER)[:-1] + ', "more": ' + "9" * 5000 + "}",
}


@pytest.mark.parametrize("name", HEADERS)
def test_an_enemys_header_is_one_sentence(name: str, tmp_path: Path):
    write_record(tmp_path / "new.h5")
    text = HEADERS[name]
    if isinstance(text, str):
        text = text[:60_000]  # an attribute takes no more
    with h5py.File(tmp_path / "new.h5") as new, forged(tmp_path / "enemy.h5") as file:
        for key in new:
            new.copy(key, file)
        file.attrs["header"] = text
    with pytest.raises(UserError, match=r"^[^\n]*is not a valid record \([^\n]*$"):
        record.read(tmp_path / "enemy.h5")


def test_an_enemys_arrays_of_other_shapes_are_one_sentence(tmp_path: Path):
    write_record(tmp_path / "good.h5")
    good = record.read(tmp_path / "good.h5")
    flat = replace(good, clients=good.clients | {"label_counts": np.arange(3)})
    record.write(tmp_path / "flat.h5", flat)
    with forged(tmp_path / "odd.h5") as file:
        file.attrs["header"] = json.dumps(HEADER)
        file["cohorts"], file["else/x/round"], file["else/x/value"] = (
            np.int64(3),
            np.arange(2),
            np.arange(2),
        )
    for name in ("flat.h5", "odd.h5"):
        with pytest.raises(UserError, match="is not a valid record"):
            record.read(tmp_path / name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("code", [errno.EACCES, errno.EIO])
def test_a_file_that_the_system_does_not_let_read_is_not_to_be_deleted(
    kind: str, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It may be whole. Root may read everything, so the system's answer is imitated."""
    write, read_back, _ = KINDS[kind]
    path = tmp_path / "file.h5"
    write(path)

    def refuse(file: Any, *arguments: Any) -> Any:
        raise OSError(code, "words of the system", str(file))

    monkeypatch.setattr(hdf5, "open", refuse, raising=False)
    with pytest.raises(FileAccessError) as caught:
        read_back(path)
    assert str(caught.value).startswith(f"{path}: {FIXES[code]}")
    assert "delete" not in str(caught.value)
    if kind == "record":
        with pytest.raises(FileAccessError):  # or training would begin anew
            record.is_valid(path)
