"""The download stage writes a file with the right checksum, or none: from a package, a server, a
local mirror, or what the user fetched behind a login."""

import contextlib
import hashlib
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.data import download as downloading
from cohort.data.download import download
from tests.data.conftest import Server
from tests.data.picture_publishers import zip_of
from tests.data.publishers import gz, tar_gz

BUNDLED = "package:sklearn/datasets/data/digits.csv.gz"
BUNDLED_SHA256 = "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"
CONTENT = bytes(range(256)) * 40
GZ = gz(CONTENT)
TAR = tar_gz({"folder/other": b"other", "folder/values": CONTENT})
ZIP = zip_of({"folder/other": b"other", "folder/values": CONTENT})
PAGE = b"<!DOCTYPE html>\n<html><body>Please log in</body></html>"
TARGET = Path("resources/raw/pacs/values")
NOWHERE = "http://127.0.0.1:9/never"
LOGIN = {"login": "https://example.org/get"}

pytestmark = pytest.mark.usefixtures("empty_folder")


def files(folder: Path) -> list[Path]:
    """List all files below a folder but locks."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock")


def declared(
    source: str, content: bytes = CONTENT, packed: bytes | None = None, member: str = ""
) -> dict[str, Any]:
    raw = {"source": source, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
    raw |= {"md5": hashlib.md5(packed).hexdigest()} if packed is not None else {}
    return raw | ({"member": member} if member else {})


def put(path: str, content: bytes) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_bytes(content)


def refusal(raw: dict[str, Any], mirror: str = "", **options: Any) -> str:
    """The one sentence with which a download fails, leaving nothing behind."""
    before = files(Path())
    with pytest.raises(UserError) as caught:
        download(raw, TARGET, mirror, **options)
    assert "\n" not in str(caught.value)
    assert files(Path()) == before
    return str(caught.value)


def test_a_bundled_file_is_copied_if_its_checksum_is_right():
    download({"source": BUNDLED, "sha256": BUNDLED_SHA256}, TARGET)
    assert hashlib.sha256(TARGET.read_bytes()).hexdigest() == BUNDLED_SHA256
    assert files(Path()) == [TARGET]
    wrong = {"source": BUNDLED, "sha256": "0" * 64}
    expected = f"SHA-256 is {BUNDLED_SHA256}, datasets.yaml expects {'0' * 64}"
    TARGET.write_text("of before")
    assert refusal(wrong) == f"{BUNDLED}: {expected}"
    assert TARGET.read_text() == "of before"


def test_an_archive_is_fetched_once_for_all_its_members(
    server: Server, capsys: pytest.CaptureFixture[str]
):
    """Also by jobs that run at the same time."""
    members = {f"folder/{name}": name.encode() * 1000 for name in ("a", "b", "c")}
    packed = tar_gz(members)
    url = server.offer("set.tar.gz", packed)
    jobs = [
        threading.Thread(
            target=download,
            args=(declared(url, content, packed, member), Path("resources/raw/set", member[-1])),
        )
        for member, content in members.items()
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    for member, content in members.items():
        assert Path("resources/raw/set", member[-1]).read_bytes() == content
    assert server.requests == ["/set.tar.gz"]
    assert f"{url}: 0.0 of 0.0 MB in " in capsys.readouterr().out


@pytest.mark.parametrize("failure", [503, 429, (CONTENT, 3000)])
def test_a_retry_succeeds_after_a_wait(
    failure: Any, server: Server, monkeypatch: pytest.MonkeyPatch
):
    waits: list[float] = []
    monkeypatch.setattr(downloading, "WAITS", (1.0, 5.0))
    monkeypatch.setattr("time.sleep", waits.append)
    download(declared(server.offer("values", failure, failure, CONTENT)), TARGET)
    assert TARGET.read_bytes() == CONTENT
    assert waits == [1.0, 5.0]


@pytest.mark.parametrize(
    ("answer", "tries", "sentence"),
    [
        ((CONTENT, 3000), 3, "(broke off after 3000 of 10240 bytes); check the network"),
        (404, 1, "could not be fetched (HTTP Error 404: Not Found)"),
        (PAGE, 1, "is a web page, not the file that datasets.yaml expects"),
        (CONTENT[:-1], 1, "SHA-256 is "),
    ],
)
def test_a_server_without_the_file(answer: Any, tries: int, sentence: str, server: Server):
    url = server.offer("values", answer)
    message = refusal(declared(url))
    assert message.startswith(f"{url}: ") and sentence in message
    assert len(server.requests) == tries


@pytest.mark.parametrize(("listens", "reason"), [(False, "Connection refused"), (True, "timed")])
def test_a_server_that_does_not_answer(
    listens: bool, reason: str, server: Server, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(downloading, "TIMEOUT", 0.05)
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        if listens:
            silent.listen()
        message = refusal(declared(f"http://127.0.0.1:{silent.getsockname()[1]}/values"))
    assert "could not be fetched" in message and reason in message


@contextlib.contextmanager
def dripping(head: bytes, count: int) -> Iterator[str]:
    """The URL of a server that sends the head at once and then a byte every 20 ms."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            with contextlib.suppress(OSError):  # nobody listens any more
                self.wfile.write(head)
                for _ in range(count):
                    time.sleep(0.02)
                    self.wfile.write(b"x")

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield f"http://127.0.0.1:{http.server_address[1]}/values"
        http.shutdown()


def test_a_server_that_drips(server: Server, monkeypatch: pytest.MonkeyPatch):
    """Each byte comes in time for the socket's timeout, which would wait for all of them."""
    monkeypatch.setattr(downloading, "TIMEOUT", 0.2)
    with dripping(b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\n", 100) as url:
        assert "(slower than 1000 bytes a second)" in refusal(declared(url))


@pytest.mark.parametrize(
    ("path", "content", "raw"),
    [
        ("values", CONTENT, declared(f"{NOWHERE}/values.gz", packed=GZ)),
        ("Set/raw/values", CONTENT, declared(f"{NOWHERE}/values.gz", packed=GZ)),
        ("a/b/values.gz", GZ, declared(f"{NOWHERE}/values.gz", packed=GZ)),
        ("a/values", CONTENT, declared(f"{NOWHERE}/set.tar.gz", CONTENT, TAR, "folder/values")),
        ("a/set.tar.gz", TAR, declared(f"{NOWHERE}/set.tar.gz", CONTENT, TAR, "folder/values")),
        ("a/set.zip", ZIP, declared(f"{NOWHERE}/set.zip", member="folder/values")),
    ],
)
def test_a_mirror_is_searched_for_the_file_or_its_archive(
    path: str, content: bytes, raw: dict[str, Any]
):
    put(f"mirror/{path}", content)
    download(raw, TARGET, "mirror")
    assert TARGET.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("path", "content", "reason"),
    [
        ("something", b"else", "data_mirror 'mirror' has no values"),
        ("values", CONTENT[:-1], "mirror/values: SHA-256 is "),
        ("values", PAGE, "mirror/values: is a web page, not the file"),
        ("values.gz", GZ[:-9], "mirror/values.gz: MD5 is "),
    ],
)
def test_a_mirror_without_the_right_file(path: str, content: bytes, reason: str, server: Server):
    put(f"mirror/{path}", content)
    message = refusal(declared(f"{server.url}/values.gz", packed=GZ), "mirror")
    assert message.startswith(reason) and "; and http" in message
    assert "could not be fetched" in message


def test_servers_are_asked_in_turn(server: Server):
    """One lacks the file, one has another of that name."""
    urls = [f"{server.url}/nothing.gz", server.offer("wrong.gz", b"wrong")]
    urls += [server.offer("right.gz", GZ), server.offer("never.gz", GZ)]
    download(declared(urls[0], packed=GZ) | {"mirrors": urls[1:]}, TARGET)
    assert TARGET.read_bytes() == CONTENT
    assert server.requests == ["/nothing.gz", "/wrong.gz", "/right.gz"]
    TARGET.unlink()
    message = refusal(declared(urls[0]) | {"mirrors": urls[1:2]})
    assert message.startswith(f"{urls[0]}: could not be fetched (")
    assert f"; and {urls[1]}: SHA-256 is " in message


def test_an_archive_that_does_not_open_is_not_kept(server: Server):
    """Without an MD5 it is known by its opening only; the next source is asked for all of it."""
    urls = [server.offer("cut/set.zip", ZIP[:-30]), server.offer("whole/set.zip", ZIP)]
    raw = declared(urls[0], member="folder/values")
    assert "set.zip" in refusal(raw)
    download(raw | {"mirrors": urls[1:]}, TARGET)
    assert TARGET.read_bytes() == CONTENT


def test_an_md5_alone_is_that_of_the_file_itself(server: Server):
    """It is not opened, from the publisher or from a mirror."""
    raw = {"md5": hashlib.md5(ZIP).hexdigest()}
    download(raw | {"source": server.offer("values", ZIP)}, TARGET)
    assert TARGET.read_bytes() == ZIP and files(Path()) == [TARGET]
    put("mirror/values", ZIP)
    TARGET.unlink()
    download(raw | {"source": f"{server.url}/nothing/values?download=1"}, TARGET, "mirror")
    assert TARGET.read_bytes() == ZIP and server.requests == ["/values"]
    assert "MD5 is " in refusal(raw | {"source": server.offer("values", ZIP[:-1])})


def test_a_zip_that_the_user_fetched_behind_a_login():
    wanted = f"pacs is behind a login ({LOGIN['login']}); put values into a folder and name that as"
    assert refusal(LOGIN).startswith(wanted)
    put("mirror/deep/values", PAGE)  # the login page, saved under the file's name
    assert f"is a web page, not the file that datasets.yaml expects; and {wanted}" in refusal(
        LOGIN, "mirror"
    )
    put("mirror/deep/values", ZIP)
    assert "mirror/deep/values: SHA-256 is " in refusal(LOGIN | {"sha256": "0" * 64}, "mirror")
    download(LOGIN, TARGET, "mirror")
    assert TARGET.read_bytes() == ZIP
