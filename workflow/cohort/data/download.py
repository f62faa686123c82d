"""The download stage: fetch a publisher's file into resources/raw and verify its checksum.

A local mirror is tried first, then the publisher, then other servers that offer the same file. Data
behind a login are taken from the path that the config names. Archives are kept in
resources/raw/packed for the other files that are in them; that folder can be deleted at any time.
"""

import contextlib
import importlib.util
import shutil
import socket
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPException, InvalidURL
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from cohort.core import user_files
from cohort.core.errors import FileAccessError, UserError, refusal
from cohort.core.files import atomic_write, lock, sha256
from cohort.data.raw import RawFile, check, check_data_path, copy_or_pack, files_in_mirror, unpack

PACKED = Path("resources/raw/packed")  # can be deleted at any time
WAITS = (2.0, 8.0, 30.0)  # seconds before each retry
TIMEOUT = 30.0  # seconds without a byte, or with fewer than SLOWEST a second on average
SLOWEST = 1000.0  # bytes a second
PROGRESS_SECONDS = 5.0
LIMIT = 20 << 30  # bytes, more than any file here, should a server never stop sending
RETRIED = (408, 425, 429)  # like all statuses from 500 on; any other client error is final
ADVICE = "check the network, or fetch it by hand and name its folder as data_mirror"


def download(
    raw: Mapping[str, Any], target: str | Path, mirror: str = "", paths: Mapping[str, str] = {}
) -> None:
    """Download or copy a raw file, with this entry in config/datasets.yaml, to `target`. Its source
    may be `package:NAME/PATH`, bundled with an installed package, or `file:PATH`. `paths` gives the
    user's zip or folder of data sets behind a login."""
    file, target = RawFile(**raw), Path(target)
    kind, _, path = file.source.partition(":")
    if kind == "package":
        _copy_or_unpack(file, _bundled_file(path), target, file.source)
    elif kind == "file":
        _copy_file(file, Path(path).expanduser(), target)
    elif file.login and (named := paths.get(target.parent.name)):
        check_data_path(target.parent.name, named)
        with atomic_write(target) as temporary:
            copy_or_pack(Path(named).expanduser(), temporary)
            check(file, temporary, named)
        print(f"taken from data_paths: {named}")
    else:
        _from_any_source(file, target, mirror)


def is_downloaded(raw: Mapping[str, Any], target: str | Path) -> bool:
    """Whether a raw file is in place, with the checksum that its entry has now."""
    expected = RawFile(**raw).sha256
    return Path(target).exists() and (not expected or sha256(target) == expected)


def _copy_or_unpack(file: RawFile, path: Path, target: Path, called: str) -> None:
    """Copy or unpack a local file; `called` names it in error messages."""
    with atomic_write(target) as temporary:
        if file.is_archive and path.name == file.source_name:
            check(file, path, called, packed=True)
            unpack(path, file.member, file.bytes, temporary, called)
        else:
            shutil.copyfile(path, temporary)
        check(file, temporary, called)


def _bundled_file(source: str) -> Path:
    package, _, path = source.partition("/")
    spec = importlib.util.find_spec(package)
    file = Path(spec.origin).parent / path if spec is not None and spec.origin is not None else None
    if file is None or not file.exists():
        raise UserError(f"package:{source}: the installed package {package} has no such file")
    return file


def _copy_file(file: RawFile, path: Path, target: Path) -> None:
    """Copy a file of this machine, which `cohort data add` or the user has declared."""
    dataset = target.parent.name
    if not path.exists():
        raise UserError(f"{path}, the source of {dataset}, does not exist")
    if file.sha256 and sha256(path) != file.sha256:
        since = f"{user_files.folder() / 'datasets.yaml'} declared it as {dataset}"
        fix = "add what it is now as another data set (cohort data add), or bring the old file back"
        raise UserError(f"{path} has changed since {since}; {fix}")
    _copy_or_unpack(file, path, target, str(path))


def _from_any_source(file: RawFile, target: Path, mirror: str) -> None:
    """Take a file from the local mirror, or else from the first server that has it."""
    refused, failures = list[str](), list[str]()
    for path in files_in_mirror(mirror, {target.name, file.source_name or target.name}):
        with _noted(refused, "not taken from the mirror"):
            _copy_or_unpack(file, path, target, str(path))
            print(f"taken from the mirror: {path}")
            return
    for url in () if file.login else (file.source, *file.mirrors):
        with _noted(failures, "not fetched"):
            _from_url(file, url, target)
            return
    if file.login:
        dataset = target.parent.name
        fix = f"fetch it by hand and name its zip or folder in data_paths.{dataset}"
        failures = [f"{dataset} is behind a login ({file.login}); {fix}"]
    why = "; ".join(refused) or "none of that name"
    lacking = f"data_mirror '{mirror}' has no {target.name} that can be used ({why}), and "
    raise UserError((lacking if mirror else "") + "; and ".join(failures))


@contextlib.contextmanager
def _noted(failures: list[str], what: str) -> Iterator[None]:
    """Print why this block fails, and add it to the failures: another source may have the file."""
    try:
        yield
    except FileAccessError:
        raise
    except UserError as error:
        print(f"{what}: {error}")
        failures.append(str(error))


def _from_url(file: RawFile, url: str, target: Path) -> None:
    """Download a file, or its archive unless that is here already. Jobs for other files of the same
    archive wait meanwhile."""
    if not file.is_archive:
        with atomic_write(target) as temporary:
            _fetch(url, temporary)
            check(file, temporary, url)
        return
    folder = PACKED / (file.md5 or file.sha256)  # (Fashion-)MNIST's files have the same names
    archive = folder / file.source_name
    with lock(folder.with_suffix(".lock")):
        try:
            check(file, archive, str(archive), packed=True)
        except (UserError, FileNotFoundError):
            with atomic_write(archive) as temporary:
                _fetch(url, temporary)
                check(file, temporary, url, packed=True)
    _copy_or_unpack(file, archive, target, url)


def _fetch(url: str, target: Path) -> None:
    """Fetch a URL over HTTP to `target`; every try starts from the beginning."""
    for number, wait in enumerate((*WAITS, None), start=1):
        try:
            _fetch_once(url, target)
            return
        except (OSError, HTTPException, ValueError) as error:
            if refusal(error):  # the disk's, not the network's
                raise
            cause = error if isinstance(error, HTTPError) else getattr(error, "reason", error)
            reason = str(cause) or repr(cause)
            if wait is None or _is_final(error):
                tries = "1 try" if number == 1 else f"{number} tries"
                raise UserError(
                    f"{url}: could not be fetched in {tries} ({reason}); {ADVICE}"
                ) from None
            print(f"{url}: {reason}; next try in {wait:g} s")
            time.sleep(wait)


def _is_final(error: Exception) -> bool:
    """Whether another try cannot help: a bad address or host, most errors of the client."""
    if isinstance(error, HTTPError):
        return error.code < 500 and error.code not in RETRIED
    unknown = isinstance(getattr(error, "reason", None), socket.gaierror)
    return unknown or isinstance(error, (InvalidURL, ValueError))


def _fetch_once(url: str, target: Path) -> None:
    request = Request(url, headers={"User-Agent": "cohort"})
    with urlopen(request, timeout=TIMEOUT) as response, open(target, "wb") as file:
        expected = response.length or 0  # 0 if the server does not say
        begin = reported = checked = time.monotonic()
        checked_bytes = 0
        while block := response.read1(1 << 20):  # what has come, not waiting for a whole block
            file.write(block)
            if file.tell() > LIMIT:
                raise UserError(f"{url}: more than {LIMIT} bytes came, which it cannot have")
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


def _amount(received: int, expected: int) -> str:
    return f"{received / 1e6:.1f}" + (f" of {expected / 1e6:.1f} MB" if expected else " MB")
