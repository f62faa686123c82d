"""Models are counted from their layers: against numbers worked out by hand, against a forward pass
on a CPU, and through the cache in the user's folder."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from torch import nn

from cohort.models import MODELS, Model, counting
from cohort.models.counting import Counts, count, counts_of
from cohort.models.networks import Shape
from tests.conftest import ROOT
from tests.models.test_models import RGB, TAKEN

BY_HAND = list(csv.DictReader(Path(__file__).with_name("counts.csv").read_text().splitlines()))
"""Counts of every model for the shapes of config/datasets.yaml, from formulas written by hand. For
EfficientNets these left out the mean over all places and the dropout before the last layer."""

LEFT_OUT = {"efficientnet-b0": 2 * 1280, "efficientnet-b3": 2 * 1536}


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and a process that has not counted any model."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    counts_of.cache_clear()
    return tmp_path / "cohort" / "models"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that were counted rather than found in the cache."""
    names: list[str] = []

    def noted(model: Model, shape: Shape, classes: int) -> Counts:
        names.append(model.name)
        return count(model, shape, classes)

    monkeypatch.setattr(counting, "count", noted)
    return names


def lenet() -> Counts:
    """Counts of LeNet-5 for CIFAR-10, as a new process would ask for them."""
    counts_of.cache_clear()
    return counts_of(MODELS["lenet5"](), RGB, 10)


@pytest.mark.parametrize(
    "row", BY_HAND, ids=lambda row: f"{row['model']}-{row['shape']}-{row['classes']}"
)
def test_counts_are_those_worked_out_by_hand(row: dict[str, str]):
    shape = tuple(map(int, row["shape"].split("x")))
    counts = count(MODELS[row["model"]](), shape, int(row["classes"]))
    assert counts.weights == int(row["weights"])
    assert counts.multiply_adds == int(row["multiply_adds"])
    assert counts.outputs == int(row["outputs"]) + LEFT_OUT.get(row["model"], 0)
    assert counts.outputs < 1.01 * int(row["outputs"])  # and so are estimates of memory


def test_every_model_is_counted():
    assert {row["model"] for row in BY_HAND} == set(MODELS)


@pytest.mark.parametrize(("name", "shape"), TAKEN)
def test_counts_are_those_of_a_forward_pass(name: str, shape: Shape):
    """Each number that a convolution or linear layer puts out takes one multiplication per weight
    of its channel; flattening puts out no new numbers, and the scores are left out."""
    network, multiplied, put_out = MODELS[name]().build(shape, 7).eval(), [], []

    def note(layer: Any, _: Any, output: torch.Tensor) -> None:
        put_out.append(output.numel())
        if isinstance(layer, nn.Conv2d | nn.Linear):
            multiplied.append(layer.weight[0].numel() * output.numel())

    for layer in network.modules():
        is_leaf = not list(layer.children()) and not isinstance(layer, nn.Flatten | nn.Identity)
        if is_leaf or type(layer).__name__ in ("SqueezeExcitation", "Residual"):
            layer.register_forward_hook(note)
    with torch.inference_mode():
        network(torch.zeros(1, *shape))
    weights = sum(parameter.numel() for parameter in network.parameters())
    layers = sum(not list(layer.children()) for layer in network.modules())
    has_statistics = any(isinstance(layer, nn.BatchNorm2d) for layer in network.modules())
    expected = Counts(weights, sum(put_out) - 7, sum(multiplied), layers, not has_statistics)
    assert count(MODELS[name](), shape, 7) == expected


def test_a_recurrent_network_by_hand():
    """80 characters: an embedding of 8, then two layers of 256 units, each with a state, an output
    and four gates before and after activation; four matrices of gates per layer and character."""
    counts = count(MODELS["char-lstm-central"](), (80,), 79)
    gates = 4 * 256 * (8 + 256) + 4 * 256 * (256 + 256)
    assert counts.outputs == 80 * (8 + 2 * 256 * 10)
    assert counts.multiply_adds == 80 * gates + 256 * 79


@dataclass(frozen=True, kw_only=True)
class Grouped(Model):
    """What the package's own models lack: groups, strides, frozen weights, a skip connection and a
    product that no layer makes."""

    name: ClassVar[str] = "lenet5"  # of a model in the package, whose counts it must not get

    def build(self, shape: Shape, classes: int) -> nn.Module:
        class Skip(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = nn.Conv2d(8, 8, 3, padding=1, groups=4, bias=False)

            def forward(self, images: torch.Tensor) -> torch.Tensor:
                return images + self.inner(images)

        head = nn.Linear(8 * 4 * 4, classes)
        head.weight.requires_grad = False
        first = nn.Conv2d(shape[0], 8, 3, stride=2, padding=1)
        return nn.Sequential(first, nn.ReLU(inplace=True), Skip(), nn.Flatten(), head)


def test_any_network_is_counted():
    """8x8 pixels become 4x4: 9 * 3 weights per number of the first layer, 9 * 2 of the grouped one.
    Four layers put out 8 * 16 numbers each: convolution, ReLU, grouped convolution and the sum."""
    counts = counts_of(Grouped(), (3, 8, 8), 5)
    assert counts.weights == (9 * 3 + 1) * 8 + 9 * 2 * 8 + 5
    assert counts.multiply_adds == 9 * 3 * 8 * 16 + 9 * 2 * 8 * 16 + 8 * 16 * 5
    assert counts.outputs == 4 * 8 * 16


def test_counts_are_remembered_between_processes(cache: Path, counted: list[str]):
    assert lenet() == lenet() == Counts(62_006, 9_864, 651_720, 12)
    assert counted == ["lenet5"]
    counts_of(MODELS["lenet5"](), RGB, 20)
    counts_of(MODELS["aml-lenet"](), RGB, 10)
    assert counted == ["lenet5", "lenet5", "aml-lenet"]
    assert len(list(cache.iterdir())) == 3


def test_a_hit_needs_no_torch(cache: Path):
    lenet()
    code = """
import sys
from cohort.models import MODELS
from cohort.models.counting import counts_of
print(counts_of(MODELS["lenet5"](), (3, 32, 32), 10).weights, "torch" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT / "workflow",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "62006 False\n"


def test_other_code_is_counted_anew(
    cache: Path, counted: list[str], monkeypatch: pytest.MonkeyPatch
):
    lenet()
    monkeypatch.setattr(counting, "code_hash", lambda package: "other")
    lenet()
    monkeypatch.setattr(counting, "version", lambda package: "99.0")
    lenet()
    assert counted == ["lenet5"] * 3


def test_a_model_from_elsewhere_is_not_cached(cache: Path, counted: list[str]):
    """The cache's key covers the code of this package only."""
    lenet()
    assert counts_of(Grouped(), (3, 8, 8), 10).weights < 2_000
    assert counted == ["lenet5", "lenet5"]
    assert len(list(cache.iterdir())) == 1


def _other_numbers(text: str) -> str:
    entry = json.loads(text)
    return json.dumps(entry | {"value": [1, 2, 3]})


@pytest.mark.parametrize(
    "damage",
    [
        lambda text: "",
        lambda text: text[: len(text) // 2],
        lambda text: "[]",
        lambda text: "null",
        lambda text: "[" * 100_000,
        lambda text: text.replace("62006", "62007"),
        _other_numbers,
        lambda text: text.replace('"lenet5"', '"lenet6"').replace("value", "values"),
    ],
)
def test_a_damaged_entry_is_counted_anew(
    cache: Path, counted: list[str], damage: Callable[[str], str]
):
    expected = lenet()
    (file,) = cache.iterdir()
    whole = file.read_text()
    file.write_text(damage(whole))
    assert lenet() == expected and counted == ["lenet5"] * 2
    assert file.read_text() == whole
    assert lenet() == expected and counted == ["lenet5"] * 2


def test_the_entry_of_another_model_is_not_taken(cache: Path, counted: list[str]):
    expected = lenet()
    (file,) = cache.iterdir()
    counts_of(MODELS["aml-lenet"](), RGB, 10)
    (other,) = set(cache.iterdir()) - {file}
    file.write_text(other.read_text())
    assert lenet() == expected


def _a_file_in_its_place(folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    folder.write_text("")


def _a_folder_for_each_entry(folder: Path) -> None:
    lenet()
    (file,) = folder.iterdir()
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("obstacle", [_a_file_in_its_place, _a_folder_for_each_entry])
def test_a_cache_that_cannot_be_written_changes_nothing(
    cache: Path, obstacle: Callable[[Path], None]
):
    obstacle(cache)
    assert lenet() == lenet() == Counts(62_006, 9_864, 651_720, 12)
