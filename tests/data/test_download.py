"""The download stage writes a file with the right checksum, or none."""

from __future__ import annotations

import contextlib
import hashlib
import re
import socket
import socketserver
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.core.files import lock
from cohort.core.paths import DRIVER_LOCK
from cohort.data import download as stage
from cohort.data import fetch
from cohort.data.download import download
from tests.data.conftest import Server
from tests.data.publishers import gz, tar_gz

SOURCE = "package:sklearn/datasets/data/digits.csv.gz"
RIGHT = "09f66e6debdee2cd2b5ae59e0d6abbb73fc2b0e0185d2e1957e9ebb51e23aa22"
CONTENT = bytes(range(256)) * 40
PAGE = b"<!DOCTYPE html>\n<html><body>Please log in</body></html>"
TARGET = Path("resources/raw/set/values")


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


def refusal(raw: dict[str, Any], mirror: str = "") -> str:
    """The one sentence with which a download fails, leaving nothing behind."""
    with pytest.raises(UserError) as caught:
        download(raw, TARGET, mirror)
    assert "\n" not in str(caught.value)
    assert [path for path in files(Path()) if "mirror" not in path.parts] == []
    return str(caught.value)


def test_a_bundled_file_is_copied(tmp_path: Path):
    target = tmp_path / "raw" / "digits.csv.gz"
    download({"source": SOURCE, "sha256": RIGHT}, target)
    assert hashlib.sha256(target.read_bytes()).hexdigest() == RIGHT
    assert files(tmp_path) == [target]


def test_a_wrong_checksum_is_reported_and_leaves_nothing():
    wrong = {"source": SOURCE, "sha256": "0" * 64}
    assert (
        refusal(wrong) == f"{SOURCE}: SHA-256 is {RIGHT}, config/datasets.yaml expects {'0' * 64}"
    )


def test_a_wrong_checksum_leaves_the_previous_file(tmp_path: Path):
    target = tmp_path / "digits.csv.gz"
    target.write_text("of before")
    with pytest.raises(UserError):
        download({"source": SOURCE, "sha256": "0" * 64}, target)
    assert target.read_text() == "of before"
    assert files(tmp_path) == [target]


MISSING = {
    "package:sklearn/datasets/data/nothing.csv": "package sklearn",
    "package:no_such_package/a.csv": "package no_such_package",
}


@pytest.mark.parametrize("source", MISSING)
def test_a_missing_file_is_reported_and_leaves_nothing(source: str):
    message = refusal({"source": source, "sha256": RIGHT})
    assert message.startswith(f"{source}: ")
    assert MISSING[source] in message


def test_a_plain_file_from_a_server(server: Server):
    download(declared(server.offer("values", CONTENT)), TARGET)
    assert files(Path()) == [TARGET]
    assert TARGET.read_bytes() == CONTENT


def test_a_gz_is_unpacked(server: Server):
    packed = gz(CONTENT)
    download(declared(server.offer("values.gz", packed), packed=packed), TARGET)
    assert TARGET.read_bytes() == CONTENT


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
    assert [Path("resources/raw/set", member[-1]).read_bytes() for member in members] == list(
        members.values()
    )
    assert server.asked == ["/set.tar.gz"]
    assert f"{url}: 0.0 of 0.0 MB in " in capsys.readouterr().out


def test_a_kept_archive_that_was_damaged_is_fetched_again(server: Server):
    packed = gz(CONTENT)
    raw = declared(server.offer("values.gz", packed), packed=packed)
    download(raw, TARGET)
    kept = stage.PACKED / raw["md5"] / "values.gz"
    kept.write_bytes(kept.read_bytes()[:-1])
    TARGET.unlink()
    download(raw, TARGET)
    assert TARGET.read_bytes() == CONTENT
    assert len(server.asked) == 2


FAILURES: dict[str, Any] = {
    "an error of the server": 503,
    "too many at once": 429,
    "an interrupted download": (CONTENT, 3000),
}


@pytest.mark.parametrize("failure", FAILURES)
def test_a_retry_succeeds(failure: str, server: Server, capsys: pytest.CaptureFixture[str]):
    download(declared(server.offer("values", FAILURES[failure], CONTENT)), TARGET)
    assert TARGET.read_bytes() == CONTENT
    assert len(server.asked) == 2
    assert "; next try in 0 s\n" in capsys.readouterr().out


def test_a_download_that_always_breaks_off(server: Server):
    url = server.offer("values", (CONTENT, 3000))
    message = refusal(declared(url))
    assert message.startswith(
        f"{url}: could not be fetched in 3 tries (broke off after 3000 of 10240 bytes); check the network"
    )
    assert len(server.asked) == 3


def test_a_404_is_not_retried(server: Server):
    assert "could not be fetched in 1 try (HTTP Error 404: Not Found)" in refusal(
        declared(f"{server.url}/nothing")
    )
    assert len(server.asked) == 1


def test_a_url_that_does_not_answer(server: Server):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))  # bound, but not listening
        message = refusal(declared(f"http://127.0.0.1:{free.getsockname()[1]}/values"))
    assert "could not be fetched in 3 tries ([Errno 111] Connection refused)" in message


def test_a_server_that_accepts_and_stays_silent(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fetch, "TIMEOUT", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        assert "in 3 tries (timed out)" in refusal(
            declared(f"http://127.0.0.1:{silent.getsockname()[1]}/values")
        )


@contextlib.contextmanager
def dripping(at_once: bytes, drop: bytes, count: int) -> Iterator[str]:
    """The URL of a server that sends some bytes at once and then, every 20 ms, a drop."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            with contextlib.suppress(OSError):  # nobody listens any more
                self.wfile.write(at_once)
                for _ in range(count):
                    time.sleep(0.02)
                    self.wfile.write(drop)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as http:
        threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01}).start()
        yield f"http://127.0.0.1:{http.server_address[1]}/values"
        http.shutdown()


@pytest.mark.parametrize(
    ("at_once", "reason"),
    [
        (b"HTTP/1.0 200 OK\r\nContent-Length: 100\r\n\r\n", "slower than 1000 bytes a second"),
        (b"HTTP/1.0 200 OK\r\nX: ", "no answer in 0.5 s"),
    ],
    ids=["content", "headers"],
)
def test_a_server_that_drips(
    at_once: bytes, reason: str, server: Server, monkeypatch: pytest.MonkeyPatch
):
    """Each byte comes in time for the socket's timeout, which would wait for all of them."""
    monkeypatch.setattr(fetch, "TIMEOUT", 0.2)
    monkeypatch.setattr(fetch, "OPENING", 0.5)
    with dripping(at_once, b"x", 100) as url:
        assert f"in 3 tries ({reason})" in refusal(declared(url))


def test_a_slow_but_steady_server(server: Server, monkeypatch: pytest.MonkeyPatch):
    """5 kB a second, five times longer than the timeout."""
    monkeypatch.setattr(fetch, "TIMEOUT", 0.2)
    content = bytes(100) * 50
    with dripping(b"HTTP/1.0 200 OK\r\n\r\n", bytes(100), 50) as url:
        download(declared(url, content), TARGET)
    assert TARGET.read_bytes() == content


@pytest.mark.parametrize("url", ["http://[bad/a", "http://host:port/a", "http://a..b/a"])
def test_an_address_that_is_none(url: str):
    with pytest.raises(UserError, match=rf"^{re.escape(url)}: is no valid address \("):
        fetch.fetch(url, Path("a"))


def test_waits_grow(server: Server, monkeypatch: pytest.MonkeyPatch):
    waited: list[float] = []
    monkeypatch.setattr(fetch, "WAITS", (1.0, 5.0, 20.0))
    monkeypatch.setattr("time.sleep", waited.append)
    refusal(declared(server.offer("values", 500)))
    assert waited == [1.0, 5.0, 20.0]


def test_a_server_that_never_stops(server: Server, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(fetch, "LIMIT", 5000)
    assert "more than 5000 bytes came" in refusal(declared(server.offer("values", CONTENT)))
    assert len(server.asked) == 1


@pytest.mark.parametrize("packed", [None, gz(CONTENT)], ids=["plain", "packed"])
def test_a_web_page_in_place_of_the_file(packed: bytes | None, server: Server):
    url = server.offer("values", PAGE)
    assert (
        refusal(declared(url, packed=packed))
        == f"{url}: is a web page, not the file that config/datasets.yaml expects"
    )


def test_a_truncated_gz_is_not_opened(server: Server):
    packed = gz(CONTENT)
    url = server.offer("values.gz", packed[:-9])
    actual, expected = (hashlib.md5(content).hexdigest() for content in (packed[:-9], packed))
    assert (
        refusal(declared(url, packed=packed))
        == f"{url}: MD5 is {actual}, config/datasets.yaml expects {expected}"
    )


def test_progress_is_logged(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(fetch, "PROGRESS_SECONDS", 0.0)
    content = bytes(600_000)
    url = server.offer("values", content)
    download(declared(url, content), TARGET)
    *progress, _ = capsys.readouterr().out.splitlines()
    amounts = [re.fullmatch(rf"{url}: (0\.\d) of 0\.6 MB", line)[1] for line in progress]
    assert amounts and amounts == sorted(amounts) and amounts[-1] == "0.6"


def test_a_host_that_cannot_be_resolved_is_asked_once(monkeypatch: pytest.MonkeyPatch):
    """No retry; and where a driver is at work, its other jobs do not ask again."""
    asked = []

    def resolve(host: str, *arguments: Any, **options: Any) -> Any:
        asked.append(host)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    raw = declared("http://data.example/values")
    for times in (1, 2):
        with pytest.raises(UserError) as caught:
            download(raw, TARGET)
        assert str(caught.value).startswith(
            "http://data.example/values: the host data.example cannot be resolved ("
        )
        assert asked == ["data.example"] * times
    with lock(DRIVER_LOCK):
        for url in ("http://data.example/values", "http://data.example/others"):
            with pytest.raises(
                UserError, match=r"data\.example could not be resolved before; check"
            ):
                download(declared(url), TARGET)
        with pytest.raises(UserError, match=r"the host more\.example cannot be resolved"):
            download(declared("http://more.example/values"), TARGET)
    assert asked == ["data.example", "data.example", "more.example"]
