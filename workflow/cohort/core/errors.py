"""Errors that a user can fix, each stated in one sentence."""

import contextlib
import difflib
import errno
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

MAX_CHARS = 2000  # of a message, which may quote a file


class UserError(Exception):
    """A wrong config, a missing file, an impossible request. The message names the place and the
    fix, in one line of limited length, with passwords in URLs masked."""

    def __init__(self, message: str):
        line = re.sub(r"(\w+://)[^/\s'\"]*@", r"\1***@", " ".join(message.splitlines()))
        if len(line) > MAX_CHARS:
            line = f"{line[: MAX_CHARS // 2]} ... {line[-MAX_CHARS // 2 :]}"
        super().__init__(line)


class FileAccessError(UserError):
    """The operating system refuses to read or write a file; neither retries nor mirrors help."""


ELSEWHERE = "or work in another folder, and start again"
FIXES = {
    errno.ENOSPC: "the disk is full; make room and start again",
    errno.EDQUOT: "the quota on this disk is used up; make room and start again",
    errno.EFBIG: "the file grows beyond the size limit; raise it (ulimit -f) and start again",
    errno.EROFS: "the disk is read-only; work in a folder that can be written and start again",
    errno.EACCES: f"permission is denied; change the permissions, {ELSEWHERE}",
    errno.EPERM: f"this is not permitted; change the permissions, {ELSEWHERE}",
    errno.ENOTDIR: "a file stands where a folder is needed; move it away and start again",
    errno.EEXIST: "a file stands where a folder is needed; move it away and start again",
    errno.EISDIR: "a folder stands where a file is needed; move it away and start again",
    errno.ENOLCK: "this disk has no file locks; work in a folder on another one and start again",
    errno.ENOSYS: "this disk has no file locks; work in a folder on another one and start again",
    errno.EIO: "the disk reports an input/output error; start again on another one",
}


def os_error_sentence(error: BaseException, path: str | Path = "") -> str | None:
    """State in one sentence what the system refused and how to fix it, or return None for any other
    error. `path` is named if the error itself names no file."""
    number = error.errno if isinstance(error, OSError) else None
    if rust := re.search(r"\(os error (\d+)\)", str(error)):  # libraries written in Rust
        number = int(rust[1])
    if number not in FIXES:
        return None
    file = Path(getattr(error, "filename", None) or path)
    if number in (errno.ENOTDIR, errno.EEXIST):
        file = next((part for part in (file, *file.parents) if part.is_file()), file)
    return f"{file}: {FIXES[number]}"


@contextlib.contextmanager
def explain_errors(path: str | Path = "") -> Iterator[None]:
    """Turn the operating system's errors in this block (permission denied, disk full, ...) into a
    FileAccessError, whose message is one sentence."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, UserError) and (sentence := os_error_sentence(error, path)):
            raise FileAccessError(sentence) from None
        raise


def suggest(word: object, allowed: Iterable[object]) -> str:
    """The end of an error sentence about an unknown word: the allowed word that is most like it, if
    it begins with the same letter, contains it or is contained in it, and all allowed words."""
    choices, word = list(map(str, allowed)), str(word)
    listed = f" (allowed: {', '.join(choices[:20])}{', ...' if len(choices) > 20 else ''})"
    for near in difflib.get_close_matches(word, choices, n=5, cutoff=0.5):
        if near[:1] == word[:1] or near in word or word in near:
            return f"; did you mean '{near}'?{listed}"
    return listed


def check_allowed(word: object, allowed: Collection[object], problem: str) -> None:
    """Raise UserError unless the word is allowed: the problem, and what it might have meant."""
    if word not in allowed:
        raise UserError(f"{problem}{suggest(word, allowed)}")


@contextlib.contextmanager
def errors_at(where: object) -> Iterator[None]:
    """Prefix every UserError raised in this block with the file or key that it is about. A message
    that begins with a dot continues the key: `errors_at("experiments.main")` turns `.exclude names`
    into `experiments.main.exclude names`; one that begins with a space continues the sentence."""
    try:
        yield
    except UserError as error:
        message = str(error)
        separator = "" if message.startswith((".", " ")) else ": "
        raise UserError(f"{where}{separator}{message}") from None
