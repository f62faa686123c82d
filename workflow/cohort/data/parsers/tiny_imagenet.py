"""Tiny ImageNet: pictures of 64x64 pixels of 200 classes of ImageNet, as JPEG files in one zip."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from cohort.core.errors import UserError
from cohort.data.parsers.listed import Listed, number_in, root_of, split_of
from cohort.data.parsers.parser import Parser
from cohort.data.split import Split
from cohort.data.zips import Zip

SIDE = 64


@dataclass(frozen=True, kw_only=True)
class TinyImageNet(Parser):
    """The publisher keeps the labels of its test part to itself, so `val` is for testing. Classes are numbered by their sorted WordNet ids.
    Some files are gray."""

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
                    train.append(
                        Listed(0, number_in(classes, word, "class", f"{path}: {name}"), name)
                    )
            test = []
            for number, line in enumerate(
                archive.read(annotations).decode("utf-8", "replace").splitlines(), 1
            ):
                file, _, word = line.partition("\t")
                if not word:
                    raise UserError(
                        f"{path}: {annotations}, line {number}: is no file and class with a tab between them"
                    )
                label = number_in(
                    classes, word.split("\t")[0], "class", f"{path}: {annotations}, line {number}"
                )
                test.append(Listed(0, label, f"{root}val/images/{file}"))
        return split_of(path, sorted(train), SIDE), split_of(path, sorted(test), SIDE)
