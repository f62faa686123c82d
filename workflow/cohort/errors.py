"""Mistakes that a user can mend, each said in one sentence."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """A wrong config, a missing file, an impossible wish: the message names the place and the mend."""


def suggest(word: object, allowed: Iterable[object]) -> str:
    """The nearest allowed spelling and the whole choice, to end an error sentence with."""
    choices = [str(choice) for choice in allowed]
    near = difflib.get_close_matches(str(word), choices, n=1, cutoff=0.5)
    listed = ", ".join(choices[:20]) + (", ..." if len(choices) > 20 else "")
    return (f"; did you mean '{near[0]}'?" if near else "") + f" (allowed: {listed})"
