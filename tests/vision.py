"""torchvision's functions for tests to compare with, also beside a torch that its compiled operators were not built for.

Such a pair fails at import, where torchvision describes two operators that then do not exist. Declaring them is enough: nothing here
calls them.
"""

from __future__ import annotations

import torch

try:
    from torchvision.transforms import v2
except RuntimeError:
    DECLARED = torch.library.Library("torchvision", "DEF")  # what is declared goes with this object
    for operator in ("nms", "qnms"):
        DECLARED.define(f"{operator}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    from torchvision.transforms import v2

functional = v2.functional

__all__ = ["functional", "v2"]
