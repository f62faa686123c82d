"""PACS and Digits-DG: pictures from four domains each, in a zip."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cohort.core.errors import UserError
from cohort.data.parsers.listed import ListedPicture, is_picture, number_in, picture_split, root_of
from cohort.data.parsers.parser import Parser
from cohort.data.split import Split
from cohort.data.zips import Zip


@dataclass(frozen=True, kw_only=True)
class Pacs(Parser):
    """Parses PACS: pictures of 227x227 pixels, resized to 64x64, in the publisher's split: `train`
    for training, `crossval` for testing.

    Classes are taken from the folders, not from the numbers in the lists, which are wrong for one
    dog in copies found online. One picture known to be broken is left out, as in Dassl.
    """

    name: ClassVar[str] = "pacs"
    domains: ClassVar[tuple[str, ...]] = ("art_painting", "cartoon", "photo", "sketch")
    classes: ClassVar[tuple[str, ...]] = (
        "dog",
        "elephant",
        "giraffe",
        "guitar",
        "horse",
        "house",
        "person",
    )
    broken: ClassVar[tuple[str, ...]] = ("sketch/dog/n02103406_4068-1.png",)

    def parse(self, folder: Path) -> tuple[Split, Split]:
        path = folder / "pacs.zip"
        with Zip(path) as archive:
            root = root_of(archive.names, f"splits/{self.domains[0]}_train_kfold.txt", str(path))
            train, test = (self._listed(archive, root, part) for part in ("train", "crossval"))
        return (
            picture_split(path, train, 64, resize=True, groups=True),
            picture_split(path, test, 64, resize=True, groups=True),
        )

    def _listed(self, archive: Zip, root: str, part: str) -> list[ListedPicture]:
        """The listed pictures of one domain after another, each in the order of its list."""
        listed = []
        for group, domain in enumerate(self.domains):
            text = f"{root}splits/{domain}_{part}_kfold.txt"
            lines = archive.read(text).decode("utf-8", "replace").splitlines()
            for number, line in enumerate(lines, 1):
                file, where = line.partition(" ")[0], f"{archive.path}: {text}, line {number}"
                folders = file.split("/")
                if len(folders) != 3 or folders[0] != domain:
                    raise UserError(
                        f"{where}: '{file}' is not a file of {domain}, like {domain}/dog/1.jpg"
                    )
                if file not in self.broken:
                    label = number_in(self.classes, folders[1], "class", where)
                    listed.append(ListedPicture(group, label, f"{root}images/{file}"))
        return listed


@dataclass(frozen=True, kw_only=True)
class DigitsDg(Parser):
    """Parses Digits-DG: digits of 32x32 pixels (others are resized), in the publisher's split:
    `train` for training, `val` for testing."""

    name: ClassVar[str] = "digits-dg"
    domains: ClassVar[tuple[str, ...]] = ("mnist", "mnist_m", "svhn", "syn")
    classes: ClassVar[tuple[str, ...]] = tuple("0123456789")

    def parse(self, folder: Path) -> tuple[Split, Split]:
        path = folder / "digits_dg.zip"
        listed: dict[str, list[ListedPicture]] = {"train": [], "val": []}
        with Zip(path) as archive:
            for name in archive.names:
                *_, domain, part, word, file = ("", "", "", *name.split("/"))
                if domain in self.domains and part in listed and is_picture(file):
                    label = number_in(self.classes, word, "class", f"{path}: {name}")
                    listed[part].append(ListedPicture(self.domains.index(domain), label, name))
        train, test = (
            picture_split(path, sorted(items), 32, resize=True, groups=True)
            for items in listed.values()
        )
        return train, test
