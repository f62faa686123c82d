"""Tiny files in the formats of picture data sets: CINIC-10, Tiny ImageNet, MedMNIST, brain tumors,
PACS and Digits-DG.

Each picture is of one color, which says whose part, group, class and number it is; its upper right
quarter is white. For each class, and in each group, there are two pictures for training and one for
testing.
"""

import gzip
import io
import itertools
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from PIL import Image

CINIC = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
WNIDS = [f"n{1443537 + 7919 * number:08}" for number in range(200)]
TUMORS = ["glioma", "meningioma", "notumor", "pituitary"]
ANIMALS = ["dog", "elephant", "giraffe", "guitar", "horse", "house", "person"]
STYLES = ["art_painting", "cartoon", "photo", "sketch"]
SOURCES = ["mnist", "mnist_m", "svhn", "syn"]
MEDICAL = {"pathmnist": (9, 28), "pathmnist-224": (9, 224)}
MEDICAL |= {"tissuemnist": (8, 28), "tissuemnist-224": (8, 224)}
PICTURE_SETS = {
    **{"cinic10": (10, 1), "tiny-imagenet": (200, 1), "pacs": (7, 4), "digits-dg": (10, 4)},
    "brain-tumor-mri-224": (4, 1),
    **{name: (classes, 1) for name, (classes, _) in MEDICAL.items()},
}
"""Data sets with their numbers of classes and groups."""


@dataclass(frozen=True, order=True)
class Picture:
    """A generated picture: where it belongs, and its color."""

    part: str
    group: int
    label: int
    number: int

    @property
    def color(self) -> tuple[int, int, int]:
        """No two alike within a part of a set."""
        return (
            30 + 60 * self.number + 100 * (self.part == "test"),
            10 + self.label % 50 * 5,
            20 + 40 * self.group + 25 * (self.label // 50),
        )

    def pixels(self, height: int, width: int) -> np.ndarray:
        """Pixels (height, width, 3) of one color, with a white quarter at the upper right."""
        image = np.full((height, width, 3), self.color, dtype=np.uint8)
        image[: height // 2, width // 2 :] = 255
        return image


def pictures(dataset: str, part: str) -> list[Picture]:
    """The pictures of a part, by group, class and number."""
    classes, groups = PICTURE_SETS[dataset]
    numbers = range(2 if part == "train" else 1)
    indices = itertools.product(range(groups), range(classes), numbers)
    return [Picture(part, *index) for index in indices]


def picture_counts(dataset: str) -> dict[str, int]:
    """How many pictures a data set's parts hold."""
    counts = {part: len(pictures(dataset, part)) for part in ("train", "test")}
    return counts | ({"validation": counts["train"]} if dataset in MEDICAL else {})


def picture_contents(dataset: str) -> dict[str, bytes]:
    """The one file of a data set."""
    if dataset in MEDICAL:
        return {f"{dataset.replace('-', '_')}.npz": npz(medical_arrays(dataset))}
    if dataset == "cinic10":
        return {"CINIC-10.tar.gz": tar_gz(shuffled(dict(cinic_members())))}
    name, members = {
        "tiny-imagenet": ("tiny-imagenet-200.zip", tiny_members),
        "pacs": ("pacs.zip", pacs_members),
        "digits-dg": ("digits_dg.zip", digits_members),
        "brain-tumor-mri-224": ("brain-tumor-mri-dataset.zip", tumor_members),
    }[dataset]
    return {name: zip_of(shuffled(dict(members())))}


def cinic_members() -> Iterator[tuple[str, bytes]]:
    """CINIC-10: names as in CIFAR and ImageNet, and one gray picture."""
    yield "README.md", b"# CINIC-10"
    yield "imagenet-contributors.csv", b"synset, image_num, cinic_set, class"
    for part, folder in (("train", "train"), ("test", "test"), ("train", "valid")):
        for item in pictures("cinic10", part):
            first = f"cifar10-{part}-{item.number}.png"
            name = f"n0269{item.label}156_{item.number}.png" if item.number else first
            content = picture_file(item.pixels(32, 32), "PNG", gray=is_gray(item))
            yield f"{folder}/{CINIC[item.label]}/{name}", content


def tiny_members() -> Iterator[tuple[str, bytes]]:
    """Tiny ImageNet, with lists of boxes and an unlabeled test part."""
    root = "tiny-imagenet-200"
    yield f"{root}/wnids.txt", "".join(f"{wnid}\n" for wnid in reversed(WNIDS)).encode()
    yield f"{root}/words.txt", b"n01443537\tgoldfish, Carassius auratus\n"
    yield f"{root}/test/images/test_0.JPEG", picture_file(np.zeros((64, 64, 3), np.uint8), "JPEG")
    for item in pictures("tiny-imagenet", "train"):
        folder = f"{root}/train/{WNIDS[item.label]}"
        name = f"{WNIDS[item.label]}_{item.number}"
        yield f"{folder}/{WNIDS[item.label]}_boxes.txt", b""
        content = picture_file(item.pixels(64, 64), "JPEG", gray=is_gray(item))
        yield f"{folder}/images/{name}.JPEG", content
    lines = []
    for index, item in enumerate(pictures("tiny-imagenet", "test")):
        lines.append(f"val_{index}.JPEG\t{WNIDS[item.label]}\t0\t32\t44\t62\n")
        yield f"{root}/val/images/val_{index}.JPEG", picture_file(item.pixels(64, 64), "JPEG")
    yield f"{root}/val/val_annotations.txt", "".join(lines).encode()


def tumor_members() -> Iterator[tuple[str, bytes]]:
    """Brain tumors: pictures of many shapes."""
    for part, folder in (("train", "Training"), ("test", "Testing")):
        for item in pictures("brain-tumor-mri-224", part):
            tumor = TUMORS[item.label]
            pixels = item.pixels(150 + 60 * item.label, 200 + 50 * item.number)
            name = f"{folder[:2]}-{tumor[:2]}_{item.number:04}.jpg"
            yield f"{folder}/{tumor}/{name}", picture_file(pixels, "JPEG")


def pacs_members() -> Iterator[tuple[str, bytes]]:
    """Images of 227 pixels, sketches as PNG; lists with numbers from 1, a wrong one and the broken picture among them."""
    lists: dict[str, list[str]] = {}
    for part, split in (("train", "train"), ("test", "crossval")):
        for item in pictures("pacs", part):
            domain, animal = STYLES[item.group], ANIMALS[item.label]
            kind = "PNG" if domain == "sketch" else "JPEG"
            name = f"{domain}/{animal}/pic_{part}_{item.number}.{'png' if kind == 'PNG' else 'jpg'}"
            yield f"pacs/images/{name}", picture_file(item.pixels(227, 227), kind)
            wrong = (domain, animal, split) == ("art_painting", "dog", "crossval")
            for folder in (split, "test"):
                line = f"{name} {0 if wrong else item.label + 1}\n"
                lists.setdefault(f"{domain}_{folder}", []).append(line)
    lists["sketch_train"].insert(1, "sketch/dog/n02103406_4068-1.png 1\n")
    yield "pacs/images/sketch/dog/n02103406_4068-1.png", b"broken"
    for name, lines in lists.items():
        yield f"pacs/splits/{name}_kfold.txt", "".join(lines).encode()


def digits_members() -> Iterator[tuple[str, bytes]]:
    """Digits-DG, with the hidden files that macOS adds to a zip."""
    yield "__MACOSX/digits_dg/svhn/train/3/._00001.jpg", b"\0\5\x16\7"
    for part, folder in (("train", "train"), ("test", "val")):
        for item in pictures("digits-dg", part):
            parent = f"digits_dg/{SOURCES[item.group]}/{folder}/{item.label}"
            yield f"{parent}/{item.number:05}.jpg", picture_file(item.pixels(32, 32), "JPEG")


def medical_arrays(dataset: str) -> dict[str, np.ndarray]:
    """MedMNIST: images as count x height x width (x 3 if in color), labels in a column. The
    validation pictures are those of training, backwards."""
    _, side = MEDICAL[dataset]
    arrays, train = {}, pictures(dataset, "train")
    parts = {"train": train, "val": train[::-1], "test": pictures(dataset, "test")}
    for prefix, items in parts.items():
        images = np.stack([item.pixels(side, side) for item in items])
        arrays[f"{prefix}_images"] = images[..., 0] if dataset.startswith("tissue") else images
        arrays[f"{prefix}_labels"] = np.array([[item.label] for item in items], dtype=np.uint8)
    return arrays


def is_gray(item: Picture) -> bool:
    """Whether the picture is the training picture that is stored in gray."""
    return (item.part, item.label, item.number) == ("train", 3, 1)


def picture_file(pixels: np.ndarray, kind: str, *, gray: bool = False) -> bytes:
    """Encode a picture; a gray one keeps the red channel."""
    file = io.BytesIO()
    options = {"quality": 95, "subsampling": 0} if kind == "JPEG" else {}
    Image.fromarray(pixels[..., 0] if gray else pixels).save(file, kind, **options)
    return file.getvalue()


def shuffled(members: Mapping[str, bytes]) -> dict[str, bytes]:
    """Shuffle members, as archives are in no particular order."""
    names = list(members)
    return {
        names[index]: members[names[index]]
        for index in np.random.default_rng(5).permutation(len(names))
    }


def zip_of(members: Mapping[str, bytes]) -> bytes:
    """A zip with fixed times."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return file.getvalue()


def tar_gz(members: Mapping[str, bytes]) -> bytes:
    """An archive of files by their path, with an entry for each folder."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        for folder in sorted({name.rpartition("/")[0] for name in members if "/" in name}):
            info = tarfile.TarInfo(folder)
            info.type = tarfile.DIRTYPE
            archive.addfile(info)
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return gz(file.getvalue())


def gz(content: bytes) -> bytes:
    """Compress with a fixed time, so that equal contents give equal bytes."""
    return gzip.compress(content, mtime=0)


def npz(arrays: Mapping[str, np.ndarray], *, packed: bool = True) -> bytes:
    """Encode an array as .npy."""
    file = io.BytesIO()
    (np.savez_compressed if packed else np.savez)(file, **arrays)
    return file.getvalue()
