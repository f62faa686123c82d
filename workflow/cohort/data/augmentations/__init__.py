"""Augmentations, random changes of training images: one file each."""

from cohort.core.components import Catalog
from cohort.data.augmentations.augmentation import Augmentation

AUGMENTATIONS = Catalog("cohort.data.augmentations", Augmentation)

__all__ = ["AUGMENTATIONS", "Augmentation"]
