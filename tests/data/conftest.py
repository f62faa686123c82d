"""A local web server with scripted answers."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from cohort.data import download


@dataclass
class Server:
    """Scripted answers per path, of which the last repeats: bytes, a status, or (bytes, how many of them to send)."""

    url: str = ""
    answers: dict[str, list[bytes | int | tuple[bytes, int]]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def offer(self, name: str, *answers: bytes | int | tuple[bytes, int]) -> str:
        """The URL under which these answers are given."""
        self.answers[f"/{name}"] = list(answers)
        return f"{self.url}/{name}"

    def next_answer(self, path: str) -> bytes | int | tuple[bytes, int]:
        self.requests.append(path)
        answers = self.answers.get(path, [404])
        return answers.pop(0) if len(answers) > 1 else answers[0]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """Retry without waiting."""
    monkeypatch.setattr(download, "WAITS", (0.0, 0.0))
    server = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer = server.next_answer(self.path)
            if isinstance(answer, int):
                self.send_error(answer)
                return
            content, sent = answer if isinstance(answer, tuple) else (answer, len(answer))
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[:sent])

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as http:
        server.url = f"http://127.0.0.1:{http.server_address[1]}"
        thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        http.shutdown()
        thread.join()
