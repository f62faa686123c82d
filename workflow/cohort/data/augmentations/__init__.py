"""Augmentations, random changes of training images: one file each."""

from cohort.core.components import catalog
from cohort.data.augmentations.augmentation import Augmentation

AUGMENTATIONS = catalog("cohort.data.augmentations", Augmentation)

__all__ = ["AUGMENTATIONS", "Augmentation"]
