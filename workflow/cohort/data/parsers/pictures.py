"""Data sets of PNG and JPEG files in an archive: CINIC-10, Tiny ImageNet, brain tumors, PACS and
Digits-DG. Pictures are sorted by group, class and name, whatever their order in the archive."""

import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar
from zipfile import ZipFile

import numpy as np

from cohort.core import UserError, lazy
from cohort.data.raw import open_zip, read_member, tar_files, zip_files
from cohort.data.split import Blocks, Parser, Split

Image = lazy("PIL.Image")

PICTURES = (".png", ".jpg", ".jpeg")
BLOCK = 16 << 20  # bytes of pixels that are decoded at once

Picture = tuple[int, int, str]
"""A picture in a zip: its group, its class, and the name of its file."""


def decode_picture(content: bytes, source: str, side: int | None = None) -> np.ndarray:
    """Decode a PNG or JPEG to bytes, channels first; gray becomes RGB. It is resized to
    `side` x `side`, if given (bilinear, antialiased). Errors name the `source`."""
    try:
        with Image.open(io.BytesIO(content), formats=("PNG", "JPEG")) as image:
            if image.mode.startswith("I"):
                raise ValueError("its gray has more than 8 bits")
            colored = image.convert("RGB")
    except Exception as error:  # a broken picture may raise anything
        reason = re.sub("<_io.BytesIO[^>]*>", "it", str(error)) or type(error).__name__
        raise UserError(f"{source}: is not a readable picture ({reason})") from None
    if side is not None and colored.size != (side, side):
        colored = colored.resize((side, side), Image.Resampling.BILINEAR)
    return np.asarray(colored).transpose(2, 0, 1)


def picture_split(
    path: Path, pictures: Sequence[Picture], side: int, *, groups: bool = False
) -> Split:
    """The split of these pictures of a zip, in this order, which are decoded block by block."""
    names = [name for _, _, name in pictures]
    numbers = np.array([pair for *pair, _ in pictures], dtype=np.int64).reshape(-1, 2)

    def read() -> Iterator[np.ndarray]:
        count = max(1, BLOCK // (3 * side * side))
        with open_zip(path) as archive:
            for begin in range(0, len(names), count):
                part = names[begin : begin + count]
                files = ((read_member(archive, name), f"{path}: {name}") for name in part)
                yield np.stack([decode_picture(*file, side) for file in files])

    values = Blocks((len(pictures), 3, side, side), read)
    return Split(values, numbers[:, 1], numbers[:, 0] if groups else None)


def class_index(classes: Sequence[str], class_name: str, source: str) -> int:
    """The index of a class; UserError if the data set has none of this name."""
    if class_name not in classes:
        listed = ", ".join(classes)
        raise UserError(f"{source}: '{class_name}' is not a class of this data set ({listed})")
    return classes.index(class_name)


def pictures_by_part(
    path: Path, parts: Sequence[str], classes: Sequence[str], domains: Sequence[str] = ()
) -> Iterator[list[Picture]]:
    """The pictures of each part of a zip of `PART/CLASS/FILE`, below a folder per domain if any."""
    by_part: dict[str, list[Picture]] = {part: [] for part in parts}
    with open_zip(path) as archive:
        names = zip_files(archive)
    for name in names:
        *_, domain, part, class_name, file = ("", "", "", *name.split("/"))
        is_in_domain = not domains or domain in domains
        if part in by_part and is_in_domain and file.lower().endswith(PICTURES):
            label = class_index(classes, class_name, f"{path}: {name}")
            group = domains.index(domain) if domains else 0
            by_part[part].append((group, label, name))
    return map(sorted, by_part.values())


def read_lines(archive: ZipFile, inner: str) -> tuple[str, list[str]]:
    """The lines of a list whose path in a zip ends in `inner`, and what comes before `inner`."""
    names = [name for name in archive.namelist() if f"/{name}".endswith(f"/{inner}")]
    roots = [name.removesuffix(inner) for name in names]
    if len(roots) != 1:
        number = "more than one" if roots else "no"
        raise UserError(f"{archive.filename}: holds {number} {inner}")
    return roots[0], read_member(archive, roots[0] + inner).decode("utf-8", "replace").splitlines()


class Cinic10(Parser):
    """Parses CINIC-10: `train` and `test`, 90,000 pictures each, without the third part `valid`.
    The archive is read once, as a stream; sorting its pictures takes a gigabyte of memory."""

    name: ClassVar[str] = "cinic10"
    classes: ClassVar[tuple[str, ...]] = (
        "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"
    )  # fmt: skip

    def parse(self, folder: Path) -> tuple[Split, ...]:
        path = folder / "CINIC-10.tar.gz"
        by_part: dict[str, list[tuple[int, str, np.ndarray]]] = {"train": [], "test": []}
        for name, content in tar_files(path):
            *_, part, class_name, file = ("", "", *name.split("/"))
            if part in by_part and file.lower().endswith(PICTURES):
                label = class_index(self.classes, class_name, f"{path}: {name}")
                pixels = np.ascontiguousarray(decode_picture(content, f"{path}: {name}"))
                by_part[part].append((label, file, pixels))
        splits = []
        for pictures in by_part.values():
            pictures.sort(key=lambda picture: picture[:2])
            labels, _, values = zip(*pictures, strict=True)
            splits.append(Split(np.stack(values), np.array(labels)))
        return tuple(splits)


class TinyImageNet(Parser):
    """Parses Tiny ImageNet: `train` for training and `val` for testing, because the labels of the
    publisher's test part are not public. Classes are numbered in the order of their WordNet ids."""

    name: ClassVar[str] = "tiny-imagenet"

    def parse(self, folder: Path) -> tuple[Split, ...]:
        path = folder / "tiny-imagenet-200.zip"
        train: list[Picture] = []
        test: list[Picture] = []
        with open_zip(path) as archive:
            root, wnids = read_lines(archive, "wnids.txt")
            _, annotations = read_lines(archive, "val/val_annotations.txt")
            classes = sorted(wnids)
            for name in zip_files(archive):
                part, class_name, inner, *_ = (*name.removeprefix(root).split("/"), "", "", "")
                if (part, inner) == ("train", "images"):
                    train.append((0, class_index(classes, class_name, f"{path}: {name}"), name))
        for line in annotations:
            file, class_name, *_ = (*line.split("\t"), "")
            label = class_index(classes, class_name, f"{path}: val/val_annotations.txt: {file}")
            test.append((0, label, f"{root}val/images/{file}"))
        return tuple(picture_split(path, sorted(part), 64) for part in (train, test))


class BrainTumorMri224(Parser):
    """Parses Kaggle's JPEG images of brain tumors, of any size, resized to 224x224 pixels."""

    name: ClassVar[str] = "brain-tumor-mri-224"
    classes: ClassVar[tuple[str, ...]] = ("glioma", "meningioma", "notumor", "pituitary")

    def parse(self, folder: Path) -> tuple[Split, ...]:
        path = folder / "brain-tumor-mri-dataset.zip"
        parts = pictures_by_part(path, ("Training", "Testing"), self.classes)
        return tuple(picture_split(path, part, 224) for part in parts)


class DigitsDg(Parser):
    """Parses Digits-DG: digits of 32x32 pixels (others are resized), in the publisher's split:
    `train` for training, `val` for testing."""

    name: ClassVar[str] = "digits-dg"
    domains: ClassVar[tuple[str, ...]] = ("mnist", "mnist_m", "svhn", "syn")

    def parse(self, folder: Path) -> tuple[Split, ...]:
        path = folder / "digits_dg.zip"
        parts = pictures_by_part(path, ("train", "val"), tuple("0123456789"), self.domains)
        return tuple(picture_split(path, part, 32, groups=True) for part in parts)


class Pacs(Parser):
    """Parses PACS: pictures of 227x227 pixels, resized to 64x64, in the publisher's split (`train`,
    and `crossval` for testing). Classes come from the folders: numbers in the lists are wrong for
    one dog in copies found online. One broken picture is left out, as in Dassl."""

    name: ClassVar[str] = "pacs"
    domains: ClassVar[tuple[str, ...]] = ("art_painting", "cartoon", "photo", "sketch")
    classes: ClassVar[tuple[str, ...]] = (
        "dog", "elephant", "giraffe", "guitar", "horse", "house", "person"
    )  # fmt: skip
    broken: ClassVar[str] = "sketch/dog/n02103406_4068-1.png"

    def parse(self, folder: Path) -> tuple[Split, ...]:
        path = folder / "pacs.zip"
        with open_zip(path) as archive:
            parts = [list(self._listed(archive, part)) for part in ("train", "crossval")]
        return tuple(picture_split(path, part, 64, groups=True) for part in parts)

    def _listed(self, archive: ZipFile, part: str) -> Iterator[Picture]:
        """The listed pictures of one domain after another, each in the order of its list."""
        for group, domain in enumerate(self.domains):
            inner = f"splits/{domain}_{part}_kfold.txt"
            root, lines = read_lines(archive, inner)
            for file in (line.partition(" ")[0] for line in lines):
                if file != self.broken:
                    class_name = file.split("/")[1] if file.startswith(f"{domain}/") else file
                    source = f"{archive.filename}: {inner}: {file}"
                    label = class_index(self.classes, class_name, source)
                    yield group, label, f"{root}images/{file}"
