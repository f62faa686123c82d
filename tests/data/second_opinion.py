"""torchvision's own readers of the same files."""

from __future__ import annotations

from typing import Any

from cohort.models.networks import from_torchvision


def readers() -> dict[str, Any]:
    """The class that reads each data set."""
    datasets = from_torchvision("datasets")
    return {
        "mnist": datasets.MNIST,
        "fashion-mnist": datasets.FashionMNIST,
        "cifar10": datasets.CIFAR10,
        "cifar10-unit": datasets.CIFAR10,
        "cifar100": datasets.CIFAR100,
        "cifar100-coarse": datasets.CIFAR100,
    }
