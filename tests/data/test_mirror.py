"""A local mirror holds the publishers' files, packed or not, anywhere below it; checksums identify
them."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from cohort.data.download import download
from tests.data.conftest import Server
from tests.data.publishers import gz, tar_gz
from tests.data.test_download import CONTENT, PAGE, TARGET, declared, refusal

pytestmark = pytest.mark.usefixtures("empty_folder")
GZ = gz(CONTENT)
ARCHIVE = tar_gz({"folder/other": b"other", "folder/values": CONTENT})
NOWHERE = "http://127.0.0.1:9/never"


def put(path: str, content: bytes) -> None:
    file = Path("mirror", path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


@pytest.mark.parametrize(
    ("path", "content"),
    [("values", CONTENT), ("Set/raw/values", CONTENT), ("values.gz", GZ), ("a/b/values.gz", GZ)],
    ids=["flat", "in folders", "flat gz", "gz in folders"],
)
def test_a_file_or_its_gz_is_found_wherever_it_lies(path: str, content: bytes):
    put(path, content)
    download(declared(f"{NOWHERE}/values.gz", packed=GZ), TARGET, "mirror")
    assert TARGET.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "content"),
    [("folder/values", CONTENT), ("set.tar.gz", ARCHIVE), ("archives/set.tar.gz", ARCHIVE)],
    ids=["member", "archive", "archive in a folder"],
)
def test_a_member_or_its_archive_is_found_wherever_it_lies(path: str, content: bytes):
    put(path, content)
    download(
        declared(f"{NOWHERE}/set.tar.gz", packed=ARCHIVE, member="folder/values"), TARGET, "mirror"
    )
    assert TARGET.read_bytes() == CONTENT


@pytest.mark.parametrize("path", ["folder/values", "a/set.zip"], ids=["member", "zip"])
def test_a_member_of_a_zip_of_unknown_checksum_has_one_of_its_own(
    path: str, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("cohort.data.fetch.WAITS", ())
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("folder/other", b"other")
        file.writestr("folder/values", CONTENT)
    put(path, archive.getvalue() if path.endswith(".zip") else CONTENT)
    raw = declared(f"{NOWHERE}/set.zip", member="folder/values")
    download(raw, TARGET, "mirror")
    assert TARGET.read_bytes() == CONTENT
    TARGET.unlink()
    assert f"{path}: SHA-256 is " in refusal(raw | {"sha256": "0" * 64}, "mirror")


def test_publishers_that_share_names_are_told_apart_by_checksums(
    capsys: pytest.CaptureFixture[str],
):
    put("A/values", CONTENT[::-1])
    put("B/values", CONTENT)
    download(declared(f"{NOWHERE}/values.gz", packed=GZ), TARGET, "mirror")
    assert TARGET.read_bytes() == CONTENT
    refused, taken = capsys.readouterr().out.splitlines()
    assert refused.startswith("not taken from the mirror: mirror/A/values: SHA-256 is ")
    assert taken == "taken from the mirror: mirror/B/values"


def test_what_the_mirror_lacks_is_downloaded(server: Server):
    put("something", b"else")
    download(declared(server.offer("values.gz", GZ), packed=GZ), TARGET, "mirror")
    assert TARGET.read_bytes() == CONTENT


def test_a_mirror_is_tried_before_the_publisher(server: Server):
    put("values", CONTENT)
    download(declared(server.offer("values", CONTENT)), TARGET, "mirror")
    assert server.asked == []


def test_a_mirror_without_the_file_and_no_network(server: Server):
    put("something", b"else")
    message = refusal(declared(f"{server.url}/values.gz", packed=GZ), "mirror")
    assert message.startswith(
        "data_mirror 'mirror' has no values that can be used (none of that name), and http://127.0.0.1"
    )
    assert "could not be fetched" in message


@pytest.mark.parametrize(
    ("path", "content", "said"),
    [
        ("values", CONTENT[:-1], "mirror/values: 10239 bytes, config/datasets.yaml expects 10240"),
        ("values", CONTENT[:-1] + b"x", "mirror/values: SHA-256 is "),
        ("values", PAGE, "mirror/values: is a web page, not the file"),
        ("values.gz", GZ[:-9], "mirror/values.gz: MD5 is "),
        ("values.gz", PAGE, "mirror/values.gz: is a web page, not the file"),
    ],
    ids=["short", "changed", "a page", "short gz", "a page for a gz"],
)
def test_a_damaged_file_in_the_mirror_is_named(
    path: str, content: bytes, said: str, server: Server
):
    put(path, content)
    message = refusal(declared(f"{server.url}/values.gz", packed=GZ), "mirror")
    assert message.startswith(f"data_mirror 'mirror' has no values that can be used ({said}")


def test_a_mirror_that_is_no_folder():
    assert (
        refusal(declared(NOWHERE), "no-mirror")
        == "data_mirror is 'no-mirror', which is not a folder; name one with the publishers' files, "
        "or leave it out to download them"
    )
