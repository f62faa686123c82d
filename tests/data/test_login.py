"""Data sets behind a login, taken from the user's zip or folder or the mirror; and files with only
an MD5."""

from __future__ import annotations

import hashlib
import os
import zipfile
from pathlib import Path

import pytest

from cohort.core.errors import UserError
from cohort.data.download import download
from tests.data.conftest import Server
from tests.data.picture_publishers import zip_of
from tests.data.test_download import CONTENT, PAGE, files

pytestmark = pytest.mark.usefixtures("empty_folder")
PAGE_URL = "https://example.org/get"
RAW = {"login": PAGE_URL}
TARGET = Path("resources/raw/pacs/pacs.zip")
ZIP = zip_of({"pacs/a.txt": b"a", "pacs/b/c.txt": CONTENT})


def test_a_zip_is_taken_as_it_is():
    Path("mine.zip").write_bytes(ZIP)
    download(RAW, TARGET, paths={"pacs": "mine.zip", "other": "nowhere"})
    assert TARGET.read_bytes() == ZIP
    assert files(Path()) == [Path("mine.zip"), TARGET]


def test_the_home_folder_is_expanded(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    Path("mine.zip").write_bytes(ZIP)
    download(RAW, TARGET, paths={"pacs": "~/mine.zip"})
    assert TARGET.read_bytes() == ZIP


def test_a_folder_becomes_one_zip_whatever_its_times_and_order():
    """Uncompressed, sorted by name, without what is hidden."""
    packed = []
    for folder, names in (("one", ["b/c.txt", "a.txt"]), ("two", ["a.txt", "b/c.txt"])):
        for name in names:
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(name)
            os.utime(file, (len(packed) * 1e6, len(packed) * 1e6))
        Path(folder, ".DS_Store").write_bytes(b"x")
        download(RAW, TARGET, paths={"pacs": folder})
        packed.append(TARGET.read_bytes())
    assert packed[0] == packed[1]
    with zipfile.ZipFile(TARGET) as archive:
        assert [
            (info.filename, info.compress_type, archive.read(info)) for info in archive.infolist()
        ] == [
            ("a.txt", zipfile.ZIP_STORED, b"a.txt"),
            ("b/c.txt", zipfile.ZIP_STORED, b"b/c.txt"),
        ]


def test_the_mirror_is_searched_for_the_declared_name():
    Path("mirror/deep").mkdir(parents=True)
    Path("mirror/deep/pacs.zip").write_bytes(ZIP)
    download(RAW, TARGET, "mirror")
    assert TARGET.read_bytes() == ZIP


def refusal(raw: dict[str, object], **options: object) -> str:
    with pytest.raises(UserError) as caught:
        download(raw, TARGET, **options)
    assert "\n" not in str(caught.value) and not TARGET.exists()
    return str(caught.value)


def test_without_a_path_the_page_is_named():
    wanted = f"pacs is behind a login ({PAGE_URL}); fetch it by hand and name its zip or folder in data_paths.pacs"
    assert refusal(RAW) == wanted
    Path("mirror").mkdir()
    assert (
        refusal(RAW, mirror="mirror")
        == f"data_mirror 'mirror' has no pacs.zip that can be used (none of that name), and {wanted}"
    )


def test_a_users_file_can_be_pinned_by_its_checksum():
    Path("mine.zip").write_bytes(ZIP)
    right = {"sha256": hashlib.sha256(ZIP).hexdigest(), "bytes": len(ZIP)}
    download(RAW | right, TARGET, paths={"pacs": "mine.zip"})
    TARGET.unlink()
    assert "mine.zip: SHA-256 is " in refusal(
        RAW | right | {"sha256": "0" * 64}, paths={"pacs": "mine.zip"}
    )
    assert "mine.zip: " in refusal(RAW | right | {"bytes": 1}, paths={"pacs": "mine.zip"})


def test_a_page_in_place_of_the_zip():
    """A browser saves the login page under the name of the file."""
    Path("mine.zip").write_bytes(PAGE)
    assert (
        refusal(RAW, paths={"pacs": "mine.zip"})
        == "mine.zip: is a web page, not the file that config/datasets.yaml expects"
    )


def test_a_path_that_was_removed():
    assert (
        refusal(RAW, paths={"pacs": "gone.zip"})
        == "data_paths.pacs is 'gone.zip', which does not exist"
    )


ARCHIVE = {"md5": hashlib.md5(ZIP).hexdigest()}


def test_an_md5_alone_is_that_of_the_file_itself(server: Server):
    """It is taken as it is, from the publisher and from a mirror."""
    download(ARCHIVE | {"source": server.offer("pacs.zip", ZIP)}, TARGET)
    assert TARGET.read_bytes() == ZIP
    assert not Path("resources/raw/packed").exists()
    TARGET.unlink()
    Path("mirror").mkdir()
    Path("mirror/pacs.zip").write_bytes(ZIP)
    download(ARCHIVE | {"source": f"{server.url}/nothing/pacs.zip?download=1"}, TARGET, "mirror")
    assert TARGET.read_bytes() == ZIP
    assert server.asked == ["/pacs.zip"]


def test_a_wrong_md5_alone(server: Server):
    url = server.offer("pacs.zip", ZIP[:-1])
    checksum = hashlib.md5(ZIP[:-1]).hexdigest()
    assert (
        refusal(ARCHIVE | {"source": url})
        == f"{url}: MD5 is {checksum}, config/datasets.yaml expects {ARCHIVE['md5']}"
    )


def test_mirrors_are_tried_in_turn(server: Server):
    """One lacks the file, one has another of that name."""
    urls = [
        f"{server.url}/nothing.zip",
        server.offer("wrong.zip", b"wrong"),
        server.offer("right.zip", ZIP),
        server.offer("never.zip", ZIP),
    ]
    download(ARCHIVE | {"source": urls[0], "mirrors": urls[1:]}, TARGET)
    assert TARGET.read_bytes() == ZIP
    assert server.asked == ["/nothing.zip", "/wrong.zip", "/right.zip"]


def test_all_mirrors_are_named_when_none_has_it(server: Server):
    urls = [f"{server.url}/nothing.zip", server.offer("wrong.zip", b"wrong")]
    message = refusal(ARCHIVE | {"source": urls[0], "mirrors": urls[1:]})
    assert (
        message.startswith(f"{urls[0]}: could not be fetched in 1 try")
        and f"; and {urls[1]}: MD5 is " in message
    )


def test_mirrors_of_a_packed_file(server: Server):
    from tests.data.publishers import gz

    packed = gz(CONTENT)
    raw = {
        "bytes": len(CONTENT),
        "sha256": hashlib.sha256(CONTENT).hexdigest(),
        "md5": hashlib.md5(packed).hexdigest(),
    }
    download(
        raw | {"source": f"{server.url}/nothing.gz", "mirrors": [server.offer("other.gz", packed)]},
        TARGET,
    )
    assert TARGET.read_bytes() == CONTENT
