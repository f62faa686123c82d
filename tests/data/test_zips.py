"""Malicious and broken zips, pictures and arrays: a user error each, in little memory, and no file
is written."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from cohort.core.errors import UserError
from cohort.data import pictures
from cohort.data.npz import StoredArray
from cohort.data.pictures import decode_picture
from cohort.data.unpack import tar_files
from cohort.data.zips import Zip
from tests.data.picture_publishers import npz, picture_file, zip_of
from tests.data.publishers import tar_gz

pytestmark = pytest.mark.usefixtures("empty_folder")
CONTENT = bytes(range(256)) * 40
ZIP = zip_of({"folder/values": CONTENT})


def info(name: str, mode: int = 0o100644, flags: int = 0) -> zipfile.ZipInfo:
    made = zipfile.ZipInfo(name)
    made.create_system, made.external_attr = 3, mode << 16
    made.flag_bits = flags
    return made


def lying(size: int) -> bytes:
    """A zip whose two heads say that the member has another size than it has."""
    true, false = struct.pack("<I", len(CONTENT)), struct.pack("<I", size)
    return ZIP.replace(true, false)


def encrypted() -> bytes:
    """A zip whose two headers claim that its member is encrypted."""
    begin = ZIP.index(b"PK\1\2")
    return ZIP[:6] + b"\1" + ZIP[7 : begin + 8] + b"\1" + ZIP[begin + 9 :]


def twice() -> bytes:
    with pytest.warns(UserWarning, match="Duplicate name"):
        return zip_of([("folder/values", CONTENT), ("folder/values", b"x")])


HOSTILE = {
    "a path that climbs": (
        lambda: zip_of({"../outside": b"x"}),
        "it holds '../outside', a path that leads out of it",
    ),
    "a path that climbs later": (
        lambda: zip_of({"folder/../../outside": b"x"}),
        "a path that leads out of it",
    ),
    "an absolute path": (
        lambda: zip_of({"/tmp/outside": b"x"}),
        "it holds '/tmp/outside', a path that leads out of it",
    ),
    "a symbolic link": (
        lambda: zip_of([(info("folder/values", 0o120777), b"/etc/passwd")]),
        "which is neither a file nor a folder",
    ),
    "a device": (
        lambda: zip_of([(info("folder/values", 0o020666), b"")]),
        "which is neither a file nor a folder",
    ),
    "a member that is too large": (
        lambda: zip_of({"folder/values": bytes(60_000)}),
        "of 60000 bytes, more than the 50000 that are allowed",
    ),
    "many that are too large": (
        lambda: zip_of({f"{n}": bytes(40_000) for n in range(4)}),
        "it unpacks to more than 150000 bytes",
    ),
    "two of one name": (twice, "it holds two members of one name"),
    "encrypted": (encrypted, "which is encrypted, or packed in an unusual way"),
    "packed otherwise": (
        lambda: zip_of({"folder/values": CONTENT}, zipfile.ZIP_LZMA),
        "encrypted, or packed in an unusual way",
    ),
    "smaller than it is": (
        lambda: lying(100),
        "folder/values in it cannot be unpacked (Bad CRC-32",
    ),
    "larger than it is": (lambda: lying(20_000), "folder/values"),
    "damaged": (
        lambda: ZIP[:60] + b"\xff" * 20 + ZIP[80:],
        "folder/values in it cannot be unpacked",
    ),
    "truncated": (lambda: ZIP[:-30], "cannot be opened as a zip (File is not a zip file)"),
    "a web page": (
        lambda: b"<!doctype html>",
        "cannot be opened as a zip (File is not a zip file)",
    ),
    "empty": (lambda: b"", "cannot be opened as a zip"),
    "without the member": (lambda: zip_of({"folder/other": CONTENT}), "holds no folder/values"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_zip_that_is_refused(case: str):
    make, sentence = HOSTILE[case]
    Path("set.zip").write_bytes(make())
    with pytest.raises(UserError) as caught, Zip(Path("set.zip"), 50_000, 150_000) as archive:
        archive.read("folder/values")
    assert (
        sentence in str(caught.value)
        and str(caught.value).startswith("set.zip: ")
        and "\n" not in str(caught.value)
    )
    assert [path.name for path in Path().rglob("*")] == ["set.zip"]


@pytest.mark.parametrize("way", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_harmless_zip_is_read_without_what_is_hidden_in_it(way: int):
    hidden = {
        "__MACOSX/folder/._values": b"x",
        ".DS_Store": b"x",
        "folder/.git/config": b"x",
        "folder/": b"",
    }
    Path("set.zip").write_bytes(zip_of(hidden | {"folder/values": CONTENT, "other": b""}, way))
    with Zip(Path("set.zip")) as archive:
        assert archive.names == ["folder/values", "other"]
        assert (archive.read("folder/values"), archive.read("other")) == (CONTENT, b"")


def test_a_file_of_a_stream_that_is_too_large():
    Path("set.tar.gz").write_bytes(tar_gz({"a": b"x" * 10, "b": bytes(1001)}))
    files = tar_files(Path("set.tar.gz"), 1000)
    assert next(files) == ("a", b"x" * 10)
    with pytest.raises(
        UserError, match=r"^set.tar.gz: 'b' has 1001 bytes, more than the 1000 that are allowed$"
    ):
        next(files)


def test_a_stream_that_ends_early():
    Path("set.tar.gz").write_bytes(tar_gz({"a": np.random.default_rng(0).bytes(50_000)})[:-20_000])
    with pytest.raises(UserError, match=r"^set.tar.gz: cannot be unpacked"):
        list(tar_files(Path("set.tar.gz"), 100_000))


PIXELS = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
PNG, JPEG = (picture_file(PIXELS, kind) for kind in ("PNG", "JPEG"))


def huge(width: int, height: int) -> bytes:
    """A PNG of few bytes whose header claims many pixels."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", zlib.crc32(kind + content))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", head)
        + chunk(b"IDAT", zlib.compress(bytes(1000)))
        + chunk(b"IEND", b"")
    )


def as_gif() -> bytes:
    file = io.BytesIO()
    pictures_of(PIXELS).save(file, "GIF")
    return file.getvalue()


def pictures_of(pixels: np.ndarray):
    from PIL import Image

    return Image.fromarray(pixels)


BROKEN = {
    "a truncated JPEG": (
        lambda: JPEG[: len(JPEG) // 2],
        "is not a readable picture (image file is truncated",
    ),
    "a truncated PNG": (lambda: PNG[: len(PNG) // 2], "is not a readable picture ("),
    "a damaged PNG": (
        lambda: PNG[:60] + b"\xff" * 30 + PNG[90:],
        "is not a readable picture (",
    ),
    "text": (lambda: b"<html>", "is not a readable picture (cannot identify image file it)"),
    "empty": (lambda: b"", "is not a readable picture (cannot identify image file it)"),
    "another form": (as_gif, "is not a readable picture (cannot identify image file it)"),
    "a bomb": (lambda: huge(20_000, 10_000), "is not a readable picture ("),
    "half a bomb": (
        lambda: huge(8_000, 7_000),
        "is not a readable picture (8000 x 7000 pixels are more than are allowed)",
    ),
    "another size": (
        lambda: picture_file(PIXELS[:31], "PNG"),
        "is a picture of 32 x 31 pixels, 32 x 32 are expected",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_picture_that_is_refused(case: str):
    make, sentence = BROKEN[case]
    with pytest.raises(UserError) as caught:
        decode_picture(make(), 32, "set.zip: a/1.png")
    assert str(caught.value).startswith(f"set.zip: a/1.png: {sentence}") and "\n" not in str(
        caught.value
    )
    assert pictures.PIXELS < 8_000 * 7_000


def test_a_picture_is_red_then_green_then_blue_row_by_row():
    result = decode_picture(PNG, 32, "here")
    np.testing.assert_array_equal(result, PIXELS.transpose(2, 0, 1))
    gray = decode_picture(picture_file(PIXELS, "PNG", gray=True), 32, "here")
    np.testing.assert_array_equal(gray, np.stack([PIXELS[..., 0]] * 3))


def by_hand(head: str, version: bytes = b"\1\0") -> bytes:
    """A .npy with this head and six bytes."""
    text = head.encode() + b" " * (118 - len(head) - 1) + b"\n"
    return b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + bytes([1, 2, 3, 4, 5, 6])


RIGHT = "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }"
ARRAYS = {
    "by columns": (
        by_hand(RIGHT.replace("False", "True")),
        "values is of uint8 by columns, not a list of whole numbers",
    ),
    "objects": (
        by_hand(RIGHT.replace("|u1", "|O")),
        "values is of object, not a list of whole numbers",
    ),
    "not whole": (
        by_hand(RIGHT.replace("|u1", "<f2")),
        "values is of float16, not a list of whole numbers",
    ),
    "a single number": (
        by_hand(RIGHT.replace("(3, 2)", "()")),
        "values is of uint8, not a list of whole numbers",
    ),
    "a longer head": (
        by_hand(RIGHT.replace("(3, 2)", "(4, 2)")),
        "values is not as long as its head says (4 x 2)",
    ),
    "sizes that overflow": (
        by_hand(RIGHT.replace("(3, 2)", f"({2**62}, 4, 2)")),
        "values is not as long as its head says",
    ),
    "a negative size": (
        by_hand(RIGHT.replace("(3, 2)", "(-3, -2)")),
        "values is of uint8, not a list of whole numbers",
    ),
    "code": (by_hand("__import__('os').system('touch written')"), "values is not a NumPy array"),
    "a later version": (by_hand(RIGHT, b"\7\0"), "values is not a NumPy array"),
    "a picture": (PNG, "values is not a NumPy array"),
    "empty": (b"", "values is not a NumPy array"),
}


@pytest.mark.parametrize("case", ARRAYS)
def test_an_array_that_is_refused(case: str):
    content, sentence = ARRAYS[case]
    Path("set.npz").write_bytes(zip_of({"values.npy": content}))
    with pytest.raises(UserError) as caught:
        StoredArray.open(Path("set.npz"), "values")
    assert (
        str(caught.value).startswith("set.npz: ")
        and sentence in str(caught.value)
        and "\n" not in str(caught.value)
    )
    assert not Path("written").exists()


@pytest.mark.parametrize("packed", [True, False])
def test_an_array_is_read_block_by_block(packed: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("cohort.data.npz.BLOCK", 3 * 10 * 2 + 1)
    values = np.arange(140, dtype="<u2").reshape(7, 5, 4)[:, :, :2].repeat(3, axis=1)[:, :5]
    Path("set.npz").write_bytes(
        npz({"values": np.ascontiguousarray(values), "other": np.arange(3)}, packed=packed)
    )
    stored = StoredArray.open(Path("set.npz"), "values")
    assert (stored.shape, stored.dtype) == ((7, 5, 2), np.dtype("<u2"))
    assert [len(block) for block in stored.blocks()] == [3, 3, 1]
    np.testing.assert_array_equal(stored.all(), values)


def test_an_array_by_hand():
    Path("set.npz").write_bytes(zip_of({"values.npy": by_hand(RIGHT)}))
    assert StoredArray.open(Path("set.npz"), "values").all().tolist() == [[1, 2], [3, 4], [5, 6]]


def test_an_array_that_was_damaged():
    content = bytearray(
        npz(
            {"values": np.random.default_rng(0).integers(0, 256, (50, 40), dtype=np.uint8)},
            packed=False,
        )
    )
    content[1000] ^= 1
    Path("set.npz").write_bytes(bytes(content))
    with pytest.raises(
        UserError, match=r"^set.npz: values.npy in it cannot be unpacked \(Bad CRC-32"
    ):
        StoredArray.open(Path("set.npz"), "values").all()
