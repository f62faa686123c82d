"""Archives, arrays and pictures that are broken or hostile: one sentence each, and nothing is written or run."""

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from cohort.core.errors import UserError
from cohort.data import raw
from cohort.data.parsers.pictures import decode_picture
from tests.data.picture_publishers import npz, picture_file, zip_of
from tests.data.publishers import gz, tar_gz

pytestmark = pytest.mark.usefixtures("empty_folder")
CONTENT = bytes(range(256)) * 40
MEMBER = "folder/values"
GZ, ZIP, TAR = gz(CONTENT), zip_of({MEMBER: CONTENT}), tar_gz({"folder/a": b"x", MEMBER: CONTENT})


@pytest.mark.parametrize(
    ("name", "packed", "member"),
    [("set.gz", GZ, ""), ("set.zip", ZIP, MEMBER), ("set", ZIP, MEMBER), ("set.tgz", TAR, MEMBER)],
)
def test_one_file_is_unpacked_and_no_more_than_is_expected(name: str, packed: bytes, member: str):
    Path(name).write_bytes(packed)
    for size, length in ((len(CONTENT), len(CONTENT)), (5, 6)):
        raw.unpack(Path(name), member, size, Path("values"), "here")
        assert Path("values").read_bytes() == CONTENT[:length]
    for broken in (packed[:-40], b"<html>", packed[:30] + bytes(60) + packed[90:]):
        Path(name).write_bytes(broken)
        with pytest.raises(UserError, match=r"^here: cannot be read \([^\n]*\)$"):
            raw.unpack(Path(name), member, len(CONTENT), Path("other"), "here")
    assert sorted(path.name for path in Path().iterdir()) == sorted([name, "values"])


@pytest.mark.parametrize(
    "content",
    [
        ZIP.replace(struct.pack("<I", len(CONTENT)), struct.pack("<I", 100)),
        ZIP[:60] + b"\xff" * 20 + ZIP[80:],
        b"<!doctype html>",
        zip_of({"folder/other": CONTENT}),
    ],
    ids=["smaller than it is", "damaged", "a web page", "without the member"],
)
def test_a_zip_that_is_refused(content: bytes):
    Path("set.zip").write_bytes(content)
    with (
        pytest.raises(UserError, match=r"^set.zip: [^\n]*cannot be read \([^\n]*\)$"),
        raw.open_zip(Path("set.zip")) as archive,
    ):
        raw.read_member(archive, MEMBER)


HEADER = "{'descr': '|u1', 'fortran_order': False, 'shape': (3, 2), }"


@pytest.mark.parametrize(
    "head",
    [
        HEADER.replace("False", "True"),  # by columns
        HEADER.replace("|u1", "|O"),
        HEADER.replace("|u1", "<f2"),
        HEADER.replace("(3, 2)", "(4, 2)"),
        HEADER.replace("(3, 2)", f"({2**62}, 4, 2)"),
        HEADER.replace("(3, 2)", "(-3, -2)"),
        "__import__('os').system('touch written')",
    ],
)
def test_an_array_that_is_refused(head: str):
    text = head.encode() + b" " * (118 - len(head) - 1) + b"\n"
    content = b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + bytes([1, 2, 3, 4, 5, 6])
    Path("set.npz").write_bytes(zip_of({"values.npy": content}))
    with pytest.raises(UserError, match=r"^set.npz: values: cannot be read \([^\n]*\)$"):
        list(raw.read_npz(Path("set.npz"), "values").read())
    assert not Path("written").exists()


@pytest.mark.parametrize("packed", [True, False])
def test_an_array_is_read_block_by_block(packed: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(raw, "BLOCK", 3 * 10 * 2 + 1)
    values = np.arange(70, dtype="<u2").reshape(7, 5, 2)
    content = npz({"values": values, "other": np.arange(3)}, packed=packed)
    Path("set.npz").write_bytes(content)
    stored = raw.read_npz(Path("set.npz"), "values")
    blocks = list(stored.read())
    assert stored.shape == (7, 5, 2) and [len(block) for block in blocks] == [3, 3, 1]
    np.testing.assert_array_equal(np.concatenate(blocks), values)
    damaged = bytearray(content)
    damaged[200] ^= 1
    Path("set.npz").write_bytes(bytes(damaged))
    with pytest.raises(UserError, match=r"^set.npz: values: cannot be read \("):
        list(raw.read_npz(Path("set.npz"), "values").read())


PIXELS = np.random.default_rng(0).integers(0, 256, (32, 32, 3), dtype=np.uint8)
PNG, JPEG, GIF = (picture_file(PIXELS, kind) for kind in ("PNG", "JPEG", "GIF"))


def huge(width: int, height: int) -> bytes:
    """A PNG of few bytes whose header claims many pixels."""
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    chunks = {b"IHDR": head, b"IDAT": zlib.compress(bytes(1000)), b"IEND": b""}
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part)) + kind + part + struct.pack(">I", zlib.crc32(kind + part))
        for kind, part in chunks.items()
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (JPEG[: len(JPEG) // 2], "image file is truncated"),
        (PNG[:60] + b"\xff" * 30 + PNG[90:], ""),
        (GIF, "cannot identify image file it"),
        (huge(20_000, 10_000), "decompression bomb"),
    ],
)
def test_a_picture_that_is_refused(content: bytes, reason: str):
    with pytest.raises(UserError, match=rf"^set.zip: a/1.png: is [^\n]*{reason}"):
        decode_picture(content, "set.zip: a/1.png")


def test_a_picture_is_red_then_green_then_blue_row_by_row():
    np.testing.assert_array_equal(decode_picture(PNG, "here"), PIXELS.transpose(2, 0, 1))
    gray = decode_picture(picture_file(PIXELS, "PNG", gray=True), "here")
    np.testing.assert_array_equal(gray, np.stack([PIXELS[..., 0]] * 3))
