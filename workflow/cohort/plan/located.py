"""Say in which file, and under which key, a mistake was found."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from cohort.core.errors import UserError


@contextlib.contextmanager
def errors_at(where: object) -> Iterator[None]:
    """Prefix every UserError raised in this block with the place it is about: a file, or a key.

    A message that begins with a dot continues the key: `errors_at("experiments.main")` turns
    `.exclude names ...` into `experiments.main.exclude names ...`. One that begins with a space
    continues the sentence.
    """
    try:
        yield
    except UserError as error:
        message = str(error)
        separator = "" if message.startswith((".", " ")) else ": "
        raise UserError(f"{where}{separator}{message}") from None


@contextlib.contextmanager
def refusals_as_errors(what: str) -> Iterator[None]:
    """Turn the ValueError by which a component refuses settings into a UserError: `what` + why."""
    try:
        yield
    except ValueError as error:
        raise UserError(f"{what}{error}") from None
