"""Brain tumors in magnetic resonance images: JPEG files of many sizes in a zip from Kaggle."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cohort.data.parsers.listed import ListedPicture, is_picture, number_in, picture_split
from cohort.data.parsers.parser import Parser
from cohort.data.split import Split
from cohort.data.zips import Zip

CLASSES = ("glioma", "meningioma", "notumor", "pituitary")
PARTS = ("Training", "Testing")


@dataclass(frozen=True, kw_only=True)
class BrainTumorMri(Parser):
    """Parses Kaggle's JPEG images of brain tumors, of any size, resized to 32x32 pixels."""

    name: ClassVar[str] = "brain-tumor-mri"
    side: ClassVar[int] = 32

    def parse(self, folder: Path) -> tuple[Split, Split]:
        path = folder / "brain-tumor-mri-dataset.zip"
        listed: dict[str, list[ListedPicture]] = {part: [] for part in PARTS}
        with Zip(path) as archive:
            for name in archive.names:
                *_, part, word, file = ("", "", *name.split("/"))
                if part in listed and is_picture(file):
                    label = number_in(CLASSES, word, "class", f"{path}: {name}")
                    listed[part].append(ListedPicture(0, label, name))
        train, test = (
            picture_split(path, sorted(items), self.side, resize=True) for items in listed.values()
        )
        return train, test


@dataclass(frozen=True, kw_only=True)
class BrainTumorMri224(BrainTumorMri):
    """Parses Kaggle's JPEG images of brain tumors, resized to 224x224 pixels."""

    name: ClassVar[str] = "brain-tumor-mri-224"
    side: ClassVar[int] = 224
