"""Tiny ImageNet: pictures of 64x64 pixels of 200 ImageNet classes, as JPEG files in one zip."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cohort.core.errors import UserError
from cohort.data.parsers.listed import ListedPicture, number_in, picture_split, root_of
from cohort.data.parsers.parser import Parser
from cohort.data.split import Split
from cohort.data.zips import Zip

SIDE = 64


@dataclass(frozen=True, kw_only=True)
class TinyImageNet(Parser):
    """Parses Tiny ImageNet: `train` for training and `val` for testing, because the labels of the
    publisher's test part are not public. Classes are numbered in the order of their WordNet ids."""

    name: ClassVar[str] = "tiny-imagenet"

    def parse(self, folder: Path) -> tuple[Split, Split]:
        path = folder / "tiny-imagenet-200.zip"
        with Zip(path) as archive:
            root = root_of(archive.names, "wnids.txt", str(path))
            classes = sorted(archive.read(f"{root}wnids.txt").decode("ascii", "replace").split())
            train, annotations = [], f"{root}val/val_annotations.txt"
            for name in archive.names:
                part, word, inner, *_ = (*name.removeprefix(root).split("/"), "", "", "")
                if name.startswith(root) and (part, inner) == ("train", "images"):
                    label = number_in(classes, word, "class", f"{path}: {name}")
                    train.append(ListedPicture(0, label, name))
            test = []
            lines = archive.read(annotations).decode("utf-8", "replace").splitlines()
            for number, line in enumerate(lines, 1):
                file, _, word = line.partition("\t")
                where = f"{path}: {annotations}, line {number}"
                if not word:
                    raise UserError(f"{where}: is not a file and a class with a tab between them")
                label = number_in(classes, word.split("\t")[0], "class", where)
                test.append(ListedPicture(0, label, f"{root}val/images/{file}"))
        return picture_split(path, sorted(train), SIDE), picture_split(path, sorted(test), SIDE)
