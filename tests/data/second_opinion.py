"""torchvision's own readers of the same files."""

from __future__ import annotations

from typing import Any

import torch

_kept: list[Any] = []  # what torch forgets is undefined again


def readers() -> dict[str, Any]:
    """The class that reads each data set. A torchvision of PyPI does not load beside a torch without CUDA until the operators that
    its import looks for are declared; no reader uses them."""
    try:
        from torchvision import datasets
    except RuntimeError:
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        _kept.append(library)
        from torchvision import datasets
    return {
        "mnist": datasets.MNIST,
        "fashion-mnist": datasets.FashionMNIST,
        "cifar10": datasets.CIFAR10,
        "cifar100": datasets.CIFAR100,
        "cifar100-coarse": datasets.CIFAR100,
    }
