"""Malicious and broken .gz and .tar.gz files: a user error each, and no file is written
elsewhere."""

from __future__ import annotations

import hashlib
import tarfile
from pathlib import Path

import pytest

from cohort.core.errors import UserError
from cohort.data import unpack as module
from cohort.data.download import download
from cohort.data.unpack import unpack
from tests.data.publishers import gz, tar_gz

CONTENT = bytes(range(256)) * 40
MEMBER = "folder/values"


def special(name: str, kind: bytes, target: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


def huge_header() -> bytes:
    """An extended header of a megabyte, which is held in memory while it is read."""
    info = tarfile.TarInfo("folder/other")
    info.pax_headers = {"comment": "x" * 1_000_000}
    return tar_gz({"folder/other": info, MEMBER: CONTENT})


HOSTILE = {
    "a path that climbs": (
        tar_gz({"../outside": b"x", MEMBER: CONTENT}),
        "it holds '../outside', a path that leads out of it",
    ),
    "a path that climbs later": (
        tar_gz({"folder/../../outside": b"x", MEMBER: CONTENT}),
        "a path that leads out of it",
    ),
    "an absolute path": (
        tar_gz({"/tmp/outside": b"x", MEMBER: CONTENT}),
        "it holds '/tmp/outside', a path that leads out of it",
    ),
    "a symbolic link": (
        tar_gz({"link": special("folder", tarfile.SYMTYPE, "/etc"), MEMBER: CONTENT}),
        "it holds 'folder', which is neither a file nor a folder",
    ),
    "a symbolic link as the member": (
        tar_gz({"link": special(MEMBER, tarfile.SYMTYPE, "/etc/passwd")}),
        "neither a file nor a folder",
    ),
    "a hard link": (
        tar_gz({"link": special("a", tarfile.LNKTYPE, "/etc/passwd"), MEMBER: CONTENT}),
        "neither a file nor a folder",
    ),
    "a device": (
        tar_gz({"device": special("null", tarfile.CHRTYPE), MEMBER: CONTENT}),
        "neither a file nor a folder",
    ),
    "a name of two lines": (tar_gz({"../a\nb": b"x", MEMBER: CONTENT}), r"it holds '../a\nb'"),
    "a member that is missing": (tar_gz({"folder/other": CONTENT}), f"holds no {MEMBER}"),
    "a member that is too large": (
        tar_gz({MEMBER: CONTENT + b"x"}),
        "unpacks to more than the 10240 bytes",
    ),
    "a member that is too small": (
        tar_gz({MEMBER: CONTENT[:-1]}),
        "unpacks to 10239 bytes, config/datasets.yaml expects 10240",
    ),
    "a bomb before the member": (
        tar_gz({"folder/zeros": bytes(1_000_000), MEMBER: CONTENT}),
        "unpacks to more than 500000 bytes",
    ),
    "a bomb in a header": (huge_header(), "unpacks to more than 500000 bytes"),
    "a truncated archive": (tar_gz({MEMBER: CONTENT})[:-40], "cannot be unpacked"),
    "a gz of no archive": (gz(CONTENT), "cannot be unpacked"),
    "no gz at all": (b"<html>", "cannot be unpacked (Not a gzipped file (b'<h'))"),
    "an empty file": (b"", "cannot be unpacked"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_an_archive_that_is_refused(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(module, "LIMIT", 500_000)
    refused(*HOSTILE[case], MEMBER, tmp_path, monkeypatch)


GZ = gz(CONTENT)
BROKEN_GZ = {
    "truncated": (
        GZ[:-20],
        "cannot be unpacked (Compressed file ended before the end-of-stream marker was reached)",
    ),
    "without its checksum": (GZ[:-8], "cannot be unpacked"),
    "another checksum": (GZ[:-8] + bytes(4) + GZ[-4:], "cannot be unpacked (CRC check failed"),
    "damaged inside": (GZ[:30] + b"\xff" * 40 + GZ[70:], "cannot be unpacked"),
    "a bomb": (
        gz(bytes(100_000_000)),
        "unpacks to more than the 10240 bytes that config/datasets.yaml expects",
    ),
    "too small": (gz(CONTENT[:-1]), "unpacks to 10239 bytes, config/datasets.yaml expects 10240"),
    "a web page": (b"<!doctype html>", "cannot be unpacked (Not a gzipped file"),
}


@pytest.mark.parametrize("case", BROKEN_GZ)
def test_a_gz_that_is_refused(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    refused(*BROKEN_GZ[case], "", tmp_path, monkeypatch)


def refused(
    packed: bytes, sentence: str, member: str, folder: Path, patch: pytest.MonkeyPatch
) -> None:
    """Assert that unpacking fails with this sentence, directly and in the download stage with the
    right MD5, and leaves nothing new behind."""
    patch.chdir(folder)
    source = Path("mirror/set.tar.gz")
    source.parent.mkdir()
    source.write_bytes(packed)
    with pytest.raises(UserError) as caught:
        unpack(source, member, len(CONTENT), Path("values"), "the archive")
    assert (
        sentence in str(caught.value)
        and "the archive" in str(caught.value)
        and "\n" not in str(caught.value)
    )
    Path("values").unlink(missing_ok=True)
    raw = {
        "md5": hashlib.md5(packed).hexdigest(),
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "bytes": len(CONTENT),
        "member": member,
    }
    patch.setattr("cohort.data.fetch.WAITS", ())
    with pytest.raises(UserError) as caught:
        download(
            raw | {"source": "http://127.0.0.1:9/set.tar.gz"}, "resources/raw/set/values", "mirror"
        )
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
    assert [path for path in Path().rglob("*") if path.is_file() and path.suffix != ".lock"] == [
        source
    ]


def test_a_member_is_unpacked_whatever_surrounds_it(tmp_path: Path):
    folder = tarfile.TarInfo("folder")
    folder.type = tarfile.DIRTYPE
    (tmp_path / "set.tar.gz").write_bytes(
        tar_gz({"folder": folder, "folder/before": b"x", f"./{MEMBER}": CONTENT, "after": b"x"})
    )
    unpack(tmp_path / "set.tar.gz", MEMBER, len(CONTENT), tmp_path / "values", "the archive")
    assert (tmp_path / "values").read_bytes() == CONTENT
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set.tar.gz", "values"]
