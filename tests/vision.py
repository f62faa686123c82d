"""torchvision's functions for tests to compare with."""

from __future__ import annotations

from cohort.models import from_torchvision

v2 = from_torchvision("transforms.v2")
functional = v2.functional

__all__ = ["functional", "v2"]
