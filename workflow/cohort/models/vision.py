"""torchvision, also beside a torch that its compiled operators were not built for."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch.library import Library

OPERATORS = ("nms", "qnms")


def from_torchvision(module: str) -> Any:
    """A module of torchvision. Beside such a torch its import fails where it describes two operators that do not exist; declaring them is
    enough, because nothing here calls them."""
    try:
        return importlib.import_module(f"torchvision.{module}")
    except RuntimeError:
        _declared()
        return importlib.import_module(f"torchvision.{module}")


@functools.cache  # what is declared goes with the object that declared it
def _declared() -> Library:
    from torch.library import Library

    library = Library("torchvision", "DEF")
    for operator in OPERATORS:
        library.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library
