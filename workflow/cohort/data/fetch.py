"""Fetch a file over HTTP, with retries, and progress in the log."""

from __future__ import annotations

import socket
import time
from http.client import HTTPException
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from cohort.core.errors import UserError, refusal
from cohort.core.files import write_text
from cohort.core.locks import is_locked
from cohort.core.paths import DRIVER_LOCK, UNRESOLVED

WAITS = (2.0, 8.0, 30.0)  # seconds before each retry
TIMEOUT = 30.0  # seconds without a byte
PROGRESS_SECONDS = 5.0
LIMIT = 20 << 30  # bytes, more than any data set here, should a server never stop sending
BLOCK = 1 << 20
RETRIED = (408, 425, 429)  # like all statuses from 500 on; any other client error is final
ADVICE = "check the network, or fetch it by hand and name its folder as data_mirror"


def fetch(url: str, target: Path, advice: str = ADVICE) -> None:
    """Download a URL to `target`; every try starts from the beginning.

    The name of an unknown host is looked up once, and where a driver is at work, once by all of its
    jobs together. `advice` ends the sentence of a failure.
    """
    host = urlsplit(url).hostname or ""
    marker = UNRESOLVED / f"{host}.txt"
    if marker.exists() and is_locked(DRIVER_LOCK):
        raise UserError(f"{url}: the host {host} could not be resolved before; {advice}")
    for number in range(len(WAITS) + 1):
        try:
            return _fetch_once(url, target)
        except (OSError, HTTPException) as error:
            if refusal(error):  # the disk's, not the network's
                raise
            if _is_unresolved(error):
                write_text(marker, f"{_reason(error)}\n", sync=False)
                reason = f"the host {host} cannot be resolved ({_reason(error)})"
                raise UserError(f"{url}: {reason}; {advice}") from None
            code = error.code if isinstance(error, HTTPError) else 500
            is_final = code < 500 and code not in RETRIED
            if is_final or number == len(WAITS):
                tries = "1 try" if number == 0 else f"{number + 1} tries"
                raise UserError(
                    f"{url}: could not be fetched in {tries} ({_reason(error)}); {advice}"
                ) from None
            print(f"{url}: {_reason(error)}; next try in {WAITS[number]:g} s")
            time.sleep(WAITS[number])
    raise AssertionError("the last try returns or raises")


def _is_unresolved(error: Exception) -> bool:
    return isinstance(error, URLError) and isinstance(error.reason, socket.gaierror)


def _fetch_once(url: str, target: Path) -> None:
    request = Request(url, headers={"User-Agent": "cohort"})
    with urlopen(request, timeout=TIMEOUT) as response, open(target, "wb") as file:
        expected = response.length or 0  # 0 if the server does not say
        begin = reported = time.monotonic()
        while block := response.read(BLOCK):
            file.write(block)
            if file.tell() > LIMIT:
                raise UserError(f"{url}: more than {LIMIT} bytes came, which no data set here has")
            if time.monotonic() - reported > PROGRESS_SECONDS:
                reported = time.monotonic()
                print(f"{url}: {_amount(file.tell(), expected)}")
        if expected and file.tell() != expected:
            raise OSError(f"broke off after {file.tell()} of {expected} bytes")
        print(f"{url}: {_amount(file.tell(), expected)} in {time.monotonic() - begin:.1f} s")


def _amount(received: int, expected: int) -> str:
    return f"{received / 1e6:.1f}" + (f" of {expected / 1e6:.1f} MB" if expected else " MB")


def _reason(error: Exception) -> str:
    """The reason for an error, in one line."""
    reason = error if isinstance(error, HTTPError) else getattr(error, "reason", error)
    return " ".join((str(reason) or repr(reason)).split())
