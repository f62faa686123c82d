"""Import torchvision even where its compiled operators do not fit the installed torch."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

from cohort.core.lazy import lazy

if TYPE_CHECKING:
    from torch import library
else:
    library = lazy("torch.library")

OPERATORS = ("nms", "qnms")


def from_torchvision(module: str) -> Any:
    """Import `torchvision.{module}`.

    With a torch that its compiled operators were not built for, torchvision's import fails where it
    describes two of them. Declaring these two is enough, because Cohort never calls them.
    """
    try:
        return importlib.import_module(f"torchvision.{module}")
    except RuntimeError:
        _declare_operators()
        return importlib.import_module(f"torchvision.{module}")


@functools.cache  # keeps the library alive, and with it what it declares
def _declare_operators() -> library.Library:
    declared = library.Library("torchvision", "DEF")
    for operator in OPERATORS:
        declared.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return declared
