"""Write files atomically, hash them and lock them."""

import contextlib
import errno
import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO

from cohort.core import user_files
from cohort.core.errors import explain_errors

CODE = (".py", ".j2", ".css", ".mplstyle")  # suffixes of the files that decide what a stage writes


@contextlib.contextmanager
def atomic_write(
    path: str | Path, *, sync: bool = True, keep: Path | None = None
) -> Iterator[Path]:
    """Yield a temporary path: what the block writes there is synced and renamed to `path` if the
    block succeeds, else removed. A previous file is first renamed to `keep`, if given."""
    path = Path(path)
    temporary = path.with_name(f".{path.stem}.{secrets.token_hex(4)}{path.suffix}")
    with explain_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield temporary
            if sync:
                _sync(temporary)
            if keep is not None and path.exists():
                path.replace(keep)
            temporary.replace(path)
            if sync:
                _sync(path.parent)
        except OSError as error:
            if str(temporary) in (str(error.filename), str(error.filename2)):
                error.filename = str(path)  # the name that the user knows
            raise
        finally:
            with contextlib.suppress(OSError):  # gone after a rename, or a read-only disk
                temporary.unlink()


def check_writable(folder: str | Path) -> None:
    """Raise UserError if the folder exists but cannot be written."""
    folder = Path(folder)
    if not folder.exists() or (folder.is_dir() and os.access(folder, os.W_OK)):
        return
    read_only = errno.EROFS if os.statvfs(folder).f_flag & os.ST_RDONLY else errno.EACCES
    with explain_errors():
        raise OSError(read_only if folder.is_dir() else errno.ENOTDIR, "", str(folder))


def write_text(path: str | Path, text: str, *, sync: bool = True) -> None:
    """Write a small text file atomically."""
    with atomic_write(path, sync=sync) as temporary:
        temporary.write_text(text, encoding="utf-8")


def clamp_times(paths: Iterable[str]) -> None:
    """Give files that are dated in the future the current time. Snakemake deletes what is made from
    such files, because it would be older than its input."""
    now = time.time()
    for path in paths:
        with contextlib.suppress(OSError):  # gone, or another user's
            if Path(path).stat().st_mtime > now:
                os.utime(path, (now, now))


def sha256(path: str | Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def code_hash(*patterns: str) -> str:
    """Hash the files of Cohort's code and templates, and of the user's folder, that match a glob
    pattern, such as `records/**/*`; a stage that takes it as a param is redone by changed code."""
    digest = hashlib.sha256()
    for root in (Path(__file__).parents[1], user_files.folder()):
        files = (file for pattern in patterns for file in root.glob(pattern))
        for file in sorted(file for file in files if file.suffix in CODE):
            digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:12]


def try_lock(path: Path) -> IO[str] | None:
    """Lock a file and return it, locked while it is open; None if another process has locked it."""
    file = open(path, "a")  # noqa: SIM115 (the caller closes it)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    return file


def lock(path: Path, waiting: Callable[[], None] | None = None) -> IO[str]:
    """Lock a file and return it; the lock ends when it is closed. If another process holds it, call
    `waiting` and wait. The holder may delete the file before closing it, and then its folder."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):  # the holder deletes the folder
            file = try_lock(path)
            if file is None:
                if waiting is not None:
                    waiting()
                file = open(path, "a")  # noqa: SIM115 (the caller closes it)
                fcntl.flock(file, fcntl.LOCK_EX)
            try:
                locked = os.fstat(file.fileno())
                if locked.st_nlink and os.path.samestat(locked, path.stat()):
                    return file
            except OSError as error:  # NFS calls a file that another node has deleted stale
                if error.errno not in (errno.ENOENT, errno.ESTALE):
                    raise
            file.close()  # the previous holder has deleted this file: lock its successor


def is_locked(path: Path) -> bool:
    """Whether a process has locked this file; False where there is no such file."""
    try:
        with open(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def cache_folder() -> Path:
    """The folder for compiled code, which can be deleted: in $XDG_CACHE_HOME or ~/.cache."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path("~/.cache").expanduser()) / "cohort"


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno != errno.EINVAL:  # some shared folders cannot sync a folder
            raise
    finally:
        os.close(handle)
