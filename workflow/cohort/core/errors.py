"""Mistakes that a user can mend, each said in one sentence."""

from __future__ import annotations

import contextlib
import difflib
import errno
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

LONGEST = 2000  # characters of a message, which may quote a file


class UserError(Exception):
    """A wrong config, a missing file, an impossible wish: the message names the place and the mend.

    It is one line of bounded length whatever it quotes, and the password of a URL is left out of it.
    """

    def __init__(self, message: str):
        line = re.sub(r"(\w+://)[^/\s'\"]*@", r"\1***@", " ".join(message.splitlines()))
        super().__init__(
            line if len(line) <= LONGEST else f"{line[: LONGEST // 2]} ... {line[-LONGEST // 2 :]}"
        )


class Refused(UserError):
    """The system does not let a file be written or read: no other source or second try helps."""


MENDS = {
    errno.ENOSPC: "the disk is full; make room and start again",
    errno.EDQUOT: "the quota on this disk is used up; make room and start again",
    errno.EFBIG: "the file grows beyond what is allowed; raise the limit (ulimit -f) and start again",
    errno.EROFS: "the disk can only be read; work in a folder that can be written and start again",
    errno.EACCES: "permission is denied; change the permissions, or work in another folder, and start again",
    errno.EPERM: "this is not permitted; change the permissions, or work in another folder, and start again",
    errno.ENOTDIR: "a file stands where a folder is needed; move it away and start again",
    errno.EEXIST: "a file stands where a folder is needed; move it away and start again",
    errno.EISDIR: "a folder stands where a file is needed; move it away and start again",
    errno.EIO: "the disk does not answer properly; start again on another one",
}


def refusal(error: BaseException, path: str | Path = "") -> str | None:
    """One sentence about what the system refused, at `path` where the error names no file; nothing where it is another kind of error."""
    number = error.errno if isinstance(error, OSError) else None
    if told := re.search(r"\(os error (\d+)\)", str(error)):  # how libraries written in Rust say it
        number = int(told[1])
    if number not in MENDS:
        return None
    place = Path(getattr(error, "filename", None) or path)
    if number in (errno.ENOTDIR, errno.EEXIST):
        place = next((part for part in (place, *place.parents) if part.is_file()), place)
    return f"{place}: {MENDS[number]}"


@contextlib.contextmanager
def explained(path: str | Path = "") -> Iterator[None]:
    """What the system refuses in this block becomes one sentence."""
    try:
        yield
    except Exception as error:
        if not isinstance(error, UserError) and (said := refusal(error, path)):
            raise Refused(said) from None
        raise


def suggest(word: object, allowed: Iterable[object]) -> str:
    """The nearest allowed spelling and the whole choice, to end an error sentence with."""
    choices = [str(choice) for choice in allowed]
    near = difflib.get_close_matches(str(word), choices, n=1, cutoff=0.5)
    listed = ", ".join(choices[:20]) + (", ..." if len(choices) > 20 else "")
    return (f"; did you mean '{near[0]}'?" if near else "") + f" (allowed: {listed})"
