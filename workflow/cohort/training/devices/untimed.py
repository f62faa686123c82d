"""Devices of which nothing is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cohort.training.devices.devices import Devices


@dataclass(frozen=True, kw_only=True)
class Untimed(Devices):
    """Devices that simulate no time: every transfer and step takes 0 seconds."""

    name: ClassVar[str] = "untimed"
