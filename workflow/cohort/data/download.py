"""The download stage: fetch a publisher's file into resources/raw and verify its checksum.

A local mirror is tried first, then the publisher, then other servers that offer the same file. Data
behind a login are taken from the mirror only. Archives are kept in
resources/raw/packed for the other files that are in them; that folder can be deleted at any time.
"""

import importlib.util
import shutil
import socket
import time
from collections.abc import Mapping
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from cohort.core.errors import FileAccessError, UserError, os_error_sentence
from cohort.core.files import atomic_write, lock, sha256
from cohort.data.raw import RawFile, files_in_mirror, unpack, verify_checksum

PACKED = Path("resources/raw/packed")  # can be deleted at any time
WAITS = (2.0, 8.0, 30.0)  # seconds before each retry
TIMEOUT = 30.0  # seconds of silence, or below MIN_SPEED, before a retry; between progress lines
MIN_SPEED = 1000.0  # bytes a second
MAX_BYTES = 20 << 30  # more than any file here, should a server never stop sending
RETRIED = (408, 425, 429)  # like all statuses from 500 on; any other client error is final
ADVICE = "check the network, or fetch it by hand and name its folder as data_mirror"


def download(raw: Mapping[str, Any], target: str | Path, mirror: str = "") -> None:
    """Download or copy a raw file, with this entry in config/datasets.yaml, to `target`. Its source
    may be `package:NAME/PATH`, bundled with an installed package, or `file:PATH`."""
    file, target = RawFile(**raw), Path(target)
    kind, _, path = file.source.partition(":")
    if kind == "package":
        package, _, inner = path.partition("/")
        spec = importlib.util.find_spec(package)
        bundled = Path(spec.origin).parent / inner if spec and spec.origin else None
        if bundled is None or not bundled.exists():
            raise UserError(f"{file.source}: the installed package {package} has no such file")
        _copy_or_unpack(file, bundled, target, file.source)
    elif kind == "file":
        _copy_or_unpack(file, Path(path).expanduser(), target, path)
    else:
        _from_any_source(file, target, mirror)


def is_downloaded(raw: Mapping[str, Any], target: str | Path) -> bool:
    """Whether a raw file is in place, with the checksum that its entry has now."""
    expected = RawFile(**raw).sha256
    return Path(target).exists() and (not expected or sha256(target) == expected)


def _copy_or_unpack(file: RawFile, path: Path, target: Path, source: str) -> None:
    """Copy or unpack a local file; `source` names it in error messages."""
    if not path.exists():
        raise UserError(f"{source}, the source of {target.parent.name}, does not exist")
    with atomic_write(target) as temporary:
        if file.is_archive and path.name == file.source_name:
            verify_checksum(file, path, source, packed=True)
            unpack(path, file.member, file.bytes, temporary, source)
        else:
            shutil.copyfile(path, temporary)
        verify_checksum(file, temporary, source)


def _from_any_source(file: RawFile, target: Path, mirror: str) -> None:
    """Take a file from the local mirror, or else from the first server that has it."""
    failures = list[str]()
    mirrored = files_in_mirror(mirror, {target.name, file.source_name or target.name})
    if mirror and not mirrored:
        failures.append(f"data_mirror '{mirror}' has no {target.name}")
    sources: list[Path | str] = [*mirrored, *([] if file.login else [file.source, *file.mirrors])]
    for source in sources:
        try:
            if isinstance(source, Path):
                _copy_or_unpack(file, source, target, str(source))
                print(f"taken from the mirror: {source}")
            else:
                _from_url(file, source, target)
            return
        except FileAccessError:
            raise
        except UserError as error:  # another source may have it
            print(f"not taken: {error}")
            failures.append(str(error))
    if file.login:
        fix = f"put {target.name} into a folder and name that as data_mirror"
        failures.append(f"{target.parent.name} is behind a login ({file.login}); {fix}")
    raise UserError("; and ".join(failures))


def _from_url(file: RawFile, url: str, target: Path) -> None:
    """Download a file, or its archive unless that is here; other jobs for it wait meanwhile."""
    if not file.is_archive:
        with atomic_write(target) as temporary:
            _fetch(url, temporary)
            verify_checksum(file, temporary, url)
        return
    folder = PACKED / (file.md5 or file.sha256)  # (Fashion-)MNIST's files have the same names
    archive = folder / file.source_name
    with lock(folder.with_suffix(".lock")):
        try:
            verify_checksum(file, archive, str(archive), packed=True)
        except (UserError, FileNotFoundError):
            with atomic_write(archive) as temporary:
                _fetch(url, temporary)
                verify_checksum(file, temporary, url, packed=True)
    try:
        _copy_or_unpack(file, archive, target, url)
    except FileAccessError:
        raise
    except UserError:  # without an MD5 nothing else tells that the archive is broken
        archive.unlink(missing_ok=True)
        raise


def _fetch(url: str, target: Path) -> None:
    """Fetch a URL over HTTP to `target`; every try starts from the beginning."""
    for wait in (*WAITS, None):
        try:
            _fetch_once(url, target)
            return
        except (OSError, HTTPException) as error:
            if os_error_sentence(error):  # the disk's, not the network's
                raise
            status = error.code if isinstance(error, HTTPError) else 500
            reason = str(error) or repr(error)
            is_offline = isinstance(getattr(error, "reason", None), socket.gaierror)
            if wait is None or is_offline or (status < 500 and status not in RETRIED):
                raise UserError(f"{url}: could not be fetched ({reason}); {ADVICE}") from None
            print(f"{url}: {reason}; next try in {wait:g} s")
            time.sleep(wait)


def _fetch_once(url: str, target: Path) -> None:
    request = Request(url, headers={"User-Agent": "cohort"})
    with urlopen(request, timeout=TIMEOUT) as response, open(target, "wb") as file:
        expected = response.length or 0  # 0 if the server does not say
        begin = checked = time.monotonic()
        size = 0
        while block := response.read1(1 << 20):  # what has come, not waiting for a whole block
            file.write(block)
            if file.tell() > MAX_BYTES:
                raise UserError(f"{url}: more than {MAX_BYTES} bytes came, which it cannot have")
            now = time.monotonic()
            if now - checked > TIMEOUT:
                print(f"{url}: {_amount(file.tell(), expected)}")
                if file.tell() - size < MIN_SPEED * (now - checked):
                    raise OSError(f"slower than {MIN_SPEED:g} bytes a second")
                checked, size = now, file.tell()
        if expected and file.tell() != expected:
            raise OSError(f"broke off after {file.tell()} of {expected} bytes")
        print(f"{url}: {_amount(file.tell(), expected)} in {time.monotonic() - begin:.1f} s")


def _amount(received: int, expected: int) -> str:
    return f"{received / 1e6:.1f}" + (f" of {expected / 1e6:.1f} MB" if expected else " MB")
