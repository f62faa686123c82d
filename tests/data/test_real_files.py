"""The publishers' real files agree with torchvision's readers and checksums.

    COHORT_DATA_MIRROR=DIR pytest tests/data/test_real_files.py

Skipped unless the variable names a folder that holds the files, packed or not.
"""

import os
from pathlib import Path

import numpy as np
import pytest
import yaml

from cohort.data import store
from cohort.data.download import download
from cohort.data.prepare import prepare
from cohort.data.split import Split
from cohort.models import from_torchvision
from cohort.settings import PlannedFile, plan_file, write_plan
from tests.conftest import ROOT
from tests.data.publishers import CIFAR_FOLDERS, CLASSES, IDX_FOLDERS

MIRROR = os.environ.get("COHORT_DATA_MIRROR", "")
DECLARED = yaml.safe_load((ROOT / "config/datasets.yaml").read_text())
DATASETS = from_torchvision("datasets")
THEIRS = {
    "mnist": DATASETS.MNIST,
    "fashion-mnist": DATASETS.FashionMNIST,
    **dict.fromkeys(("cifar10", "cifar10-unit"), DATASETS.CIFAR10),
    **dict.fromkeys(("cifar100", "cifar100-coarse"), DATASETS.CIFAR100),
}
COARSE_OF_FINE = "4 1 14 8 0 6 7 7 18 3 3 14 9 18 7 11 3 9 7 11 6 11 5 10 7 6 13 15 3 15 0 11 1 10 12 14 16 9 11 5 5 19 8 8 15 13 14 17 18 10 \
16 4 17 4 2 0 17 4 18 17 10 3 2 12 12 16 12 1 9 19 2 10 0 1 16 12 9 13 15 13 16 19 2 4 6 19 5 5 8 19 18 1 2 15 6 0 17 8 14 13"  # known


@pytest.fixture(scope="module", params=CLASSES)
def prepared(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Path, dict[str, Split]]:
    """A data set's name, the folder it was prepared in, and both splits as stored."""
    if not MIRROR:
        pytest.skip("COHORT_DATA_MIRROR names no folder with the publishers' files")
    dataset, folder = request.param, tmp_path_factory.mktemp(request.param)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("cohort.data.download.WAITS", ())
        mirror = str(Path(MIRROR).resolve())
        patch.chdir(folder)
        for name, raw in DECLARED[dataset]["files"].items():
            download(raw, f"resources/raw/{dataset}/{name}", mirror)
        settings = DECLARED[dataset] | {"dataset": dataset}
        write_plan(PlannedFile("data.h5", "k0123456789ab", settings, {}, {}))
        prepare(plan_file("k0123456789ab"), "data.h5")
        return dataset, folder, {part: store.read("data.h5", part)[0] for part in ("train", "test")}


def test_the_scaling_is_that_of_the_training_images(prepared: tuple[str, Path, dict[str, Split]]):
    """Nearly: the deviations that are usual for CIFAR-100 are up to 0.00017 off."""
    dataset, _, splits = prepared
    info, images = DECLARED[dataset], splits["train"].values
    if not any(info["mean"]):
        pytest.skip("not standardized")
    for channel, (mean, std) in enumerate(zip(info["mean"], info["std"], strict=True)):
        values = images[:, channel].astype(np.float32) / 255
        assert abs(values.mean(dtype=np.float64) - mean) < 2e-4
        assert abs(values.std(dtype=np.float64) - std) < 2e-4


def test_torchvision_reads_the_same(prepared: tuple[str, Path, dict[str, Split]]):
    dataset, folder, splits = prepared
    path = (IDX_FOLDERS | CIFAR_FOLDERS)[dataset]
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    (folder / path).symlink_to(folder / "resources/raw" / dataset)
    for part, split in splits.items():
        with pytest.MonkeyPatch.context() as patch:
            # it reads the names of classes, which no stage needs
            patch.setattr(THEIRS["cifar10"], "_load_meta", lambda self: None)
            theirs = THEIRS[dataset](folder, train=part == "train")
        images = np.asarray(theirs.data)
        ours = split.values.transpose(0, 2, 3, 1) if images.ndim == 4 else split.values[:, 0]
        np.testing.assert_array_equal(ours, images)
        fine = np.asarray(theirs.targets)
        if dataset == "cifar100-coarse":
            fine = np.array(COARSE_OF_FINE.split(), dtype=int)[fine]
        np.testing.assert_array_equal(split.labels, fine)


@pytest.mark.parametrize("dataset", CLASSES)
def test_md5_of_what_is_downloaded_is_what_torchvision_lists(dataset: str):
    files, theirs = DECLARED[dataset]["files"].values(), THEIRS[dataset]
    listed = {md5 for _, md5 in theirs.resources} if dataset in IDX_FOLDERS else {theirs.tgz_md5}
    assert {file["md5"] for file in files} == listed
