"""Fetch a file over HTTP, with retries, and progress in the log."""

from __future__ import annotations

import socket
import time
from concurrent.futures import Future
from http.client import HTTPException, HTTPResponse, InvalidURL
from pathlib import Path
from threading import Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from cohort.core.errors import UserError, refusal

WAITS = (2.0, 8.0, 30.0)  # seconds before each retry
TIMEOUT = 30.0  # seconds without a byte, or with fewer than SLOWEST a second on average
SLOWEST = 1000.0  # bytes a second
OPENING = 4 * TIMEOUT  # seconds until all headers have come, redirections included
PROGRESS_SECONDS = 5.0
LIMIT = 20 << 30  # bytes, more than any file here, should a server never stop sending
RETRIED = (408, 425, 429)  # like all statuses from 500 on; any other client error is final
ADVICE = "check the network, or fetch it by hand and name its folder as data_mirror"


def fetch(url: str, target: Path, advice: str = ADVICE, limit: int | None = None) -> None:
    """Download a URL of at most `limit` bytes (default: LIMIT) to `target`; every try starts from
    the beginning. `advice` ends the sentence of a failure."""
    for number in range(len(WAITS) + 1):
        try:
            return _fetch_once(url, target, LIMIT if limit is None else limit)
        except (OSError, HTTPException, ValueError) as error:
            if refusal(error):  # the disk's, not the network's
                raise
            if _is_final(error) or number == len(WAITS):
                tries = "1 try" if number == 0 else f"{number + 1} tries"
                reason = f"could not be fetched in {tries} ({_reason(error)})"
                raise UserError(f"{url}: {reason}; {advice}") from None
            print(f"{url}: {_reason(error)}; next try in {WAITS[number]:g} s")
            time.sleep(WAITS[number])
    raise AssertionError("the last try returns or raises")


def _is_final(error: Exception) -> bool:
    """Whether another try cannot help: an invalid address, an unknown host, most errors of the
    client."""
    if isinstance(error, HTTPError):
        return error.code < 500 and error.code not in RETRIED
    reason = getattr(error, "reason", None)
    return isinstance(error, (InvalidURL, ValueError)) or isinstance(reason, socket.gaierror)


def _reason(error: Exception) -> str:
    reason = error if isinstance(error, HTTPError) else getattr(error, "reason", error)
    return str(reason) or repr(reason)


def _fetch_once(url: str, target: Path, limit: int) -> None:
    with _open(url) as response, open(target, "wb") as file:
        expected = response.length or 0  # 0 if the server does not say
        begin = reported = checked = time.monotonic()
        checked_bytes = 0
        while block := response.read1(1 << 20):  # what has come, not waiting for a whole block
            file.write(block)
            if file.tell() > limit:
                raise UserError(f"{url}: more than {limit} bytes came, which it cannot have")
            now = time.monotonic()
            if now - checked > TIMEOUT:
                if file.tell() - checked_bytes < SLOWEST * (now - checked):
                    raise OSError(f"slower than {SLOWEST:g} bytes a second")
                checked, checked_bytes = now, file.tell()
            if now - reported > PROGRESS_SECONDS:
                reported = now
                print(f"{url}: {_amount(file.tell(), expected)}")
        if expected and file.tell() != expected:
            raise OSError(f"broke off after {file.tell()} of {expected} bytes")
        print(f"{url}: {_amount(file.tell(), expected)} in {time.monotonic() - begin:.1f} s")


def _open(url: str) -> HTTPResponse:
    """Open a URL in a thread that is left behind if the headers do not come within OPENING: a
    socket's timeout starts anew with each byte."""
    answer: Future[HTTPResponse] = Future()

    def work() -> None:
        try:
            request = Request(url, headers={"User-Agent": "cohort"})
            answer.set_result(urlopen(request, timeout=TIMEOUT))
        except BaseException as error:
            answer.set_exception(error)

    Thread(target=work, daemon=True).start()
    try:
        return answer.result(OPENING)
    except TimeoutError:
        if answer.done():  # its own, of the socket
            raise
        raise OSError(f"no answer in {OPENING:g} s") from None


def _amount(received: int, expected: int) -> str:
    return f"{received / 1e6:.1f}" + (f" of {expected / 1e6:.1f} MB" if expected else " MB")
