"""A component's numbers move only together with its science version."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import cohort
from cohort.core.components import Catalog
from cohort.data.split import Split
from cohort.selection.selector import State
from cohort.training.devices import Speeds
from cohort.training.rounds import Rounds
from cohort.training.servers import Merged
from cohort.training.task import RunState
from cohort.training.updates import Weights
from tests.golden import golden
from tests.golden.computations import CATALOGS, KEYS, all_values, component
from tests.golden.golden import complaint, read, record, same_numbers

MOVED = (
    "the numbers of {} moved without a new science version; bump its `science` or undo the change"
)
STEP = 1 + 1e-6
WITHOUT_GOLDEN_RUNS = {
    "cohort.results.figures": "draws what a cell recorded",
    "cohort.results.tables": "shows what a cell recorded",
    "cohort.results.claims": "judges what a cell recorded",
    "cohort.results.report": "shows what a cell recorded",
    "cohort.needs": "changes numbers through a selector only, and tests/needs has them by hand",
    "cohort.training.evaluators": "measures after a round and changes nothing that is trained",
}


@pytest.fixture(scope="session", autouse=True)
def recorded(pytestconfig: pytest.Config) -> None:
    if pytestconfig.getoption("--record", default=False):
        record()


@pytest.mark.parametrize("key", KEYS)
def test_numbers_are_those_of_the_golden_run(key: str):
    if message := complaint(key, read()):
        pytest.fail(message)


def test_every_catalog_of_the_package_is_asked():
    names = [info.name for info in pkgutil.walk_packages(cohort.__path__, "cohort.")]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    values = [value for module in modules for value in vars(module).values()]
    catalogs = {value.package: value for value in values if isinstance(value, Catalog)}
    without = tuple(WITHOUT_GOLDEN_RUNS)
    results = [catalog for name, catalog in catalogs.items() if not name.startswith(without)]
    covered = [components for components, _ in CATALOGS.values()]
    assert [list(components) for components in results if components not in covered] == []
    assert [list(components) for components in covered if components not in results] == []


def test_golden_runs_are_of_components_that_exist():
    assert sorted(set(read()) - set(KEYS)) == [], f"forget them with {golden.COMMAND}"


def swapped(parts: list[np.ndarray]) -> list[np.ndarray]:
    """One sample of client 0 for one of client 1."""
    changed = [part.copy() for part in parts]
    changed[0][0], changed[1][0] = parts[1][0], parts[0][0]
    return changed


def heavier(network: nn.Module) -> nn.Module:
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.mul_(STEP)
    return network


def scaled(weights: Weights) -> Weights:
    return {name: tensor * STEP for name, tensor in weights.items()}


def merged_otherwise(result: Merged) -> Merged:
    return result._replace(weights=scaled(result.weights))


def disturbed(rounds: Rounds) -> Rounds:
    run = rounds.run

    def run_otherwise(*arguments: Any) -> Iterator[RunState]:
        for state in run(*arguments):
            state.weights = scaled(state.weights)
            yield state

    rounds.run = run_otherwise
    return rounds


def faster(schedule: Any) -> Any:
    schedule.optimizer.param_groups[0]["lr"] *= STEP
    return schedule


def with_one_pixel(splits: tuple[Split, Split]) -> tuple[Split, Split]:
    values = all_values(splits[1]).copy()
    values.flat[0] += 1
    return splits[0], Split(values, splits[1].labels, splits[1].groups)


def other_speeds(speeds: Speeds | None) -> Speeds:
    if speeds is None:
        return Speeds(np.ones(3), np.ones(3))
    return Speeds(speeds.samples * STEP, speeds.bytes)


PERTURBATIONS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "model": ("build", heavier),
    "augmentation": ("apply", lambda images: images * STEP),
    "partition": ("deal", swapped),
    "selector": ("select", lambda cohort: cohort[::-1]),
    "objective": ("losses", lambda losses: losses * STEP),
    "server": ("apply", merged_otherwise),
    "procedure": ("rounds_of", disturbed),
    "devices": ("speeds", other_speeds),
    "availability": ("present", lambda is_there: ~is_there),
    "participation": ("responds", lambda responds: ~responds),
    "schedule": ("build", faster),
    "dataset": ("parse", with_one_pixel),
}


def perturb(patch: pytest.MonkeyPatch, key: str, method: str, change: Callable[[Any], Any]) -> None:
    original = getattr(component(key), method)
    patch.setattr(component(key), method, lambda *arguments: change(original(*arguments)))


@pytest.mark.parametrize("key", KEYS)
def test_a_slightly_changed_component_is_found(key: str, monkeypatch: pytest.MonkeyPatch):
    perturb(monkeypatch, key, *PERTURBATIONS[key.partition(":")[0]])
    assert complaint(key, read()) == MOVED.format(key)


def keys_with(kind: str, method: str) -> list[str]:
    """The components of a kind that define a method themselves."""
    return [key for key in KEYS if key.startswith(kind) and method in vars(component(key))]


@pytest.mark.parametrize("key", keys_with("selector:", "observe"))
def test_a_selector_that_remembers_otherwise_is_found(key: str, monkeypatch: pytest.MonkeyPatch):
    """The same values in another order; a single value, or equal ones, a little larger."""

    def otherwise(state: State) -> State:
        pairs = [(name, array, array[::-1]) for name, array in state.items()]
        return {name: back if (own != back).any() else own + 1 for name, own, back in pairs}

    perturb(monkeypatch, key, "observe", otherwise)
    assert complaint(key, read()) == MOVED.format(key)


@pytest.mark.parametrize("key", keys_with("partition:", "borrow"))
def test_a_partition_that_borrows_otherwise_is_found(key: str, monkeypatch: pytest.MonkeyPatch):
    """The same samples, each one client further on."""
    perturb(
        monkeypatch,
        key,
        "borrow",
        lambda parts: (parts[0], [parts[1][-1], *parts[1][:-1]], parts[2]),
    )
    assert complaint(key, read()) == MOVED.format(key)


def test_a_new_science_version_and_a_new_component_ask_for_a_golden_run(
    monkeypatch: pytest.MonkeyPatch,
):
    key, command = "selector:entropy", "record it with `pytest tests/golden --record`"
    actual = read()
    was, now = actual[key]["science"], actual[key]["science"] + 1
    monkeypatch.setattr(component(key), "science", now)
    expected = f"{key} is at science {now} but its golden run is of science {was}; {command}"
    assert complaint(key, actual) == expected
    del actual[key]
    assert complaint(key, actual) == f"{key} has no golden run; {command}"


@pytest.mark.parametrize(
    ("actual", "is_same"),
    [
        ([1, 2.0, "a"], True),
        ([1, 2.0 * (1 + 1e-11), "a"], True),
        ([1, 2.0 * (1 + 1e-8), "a"], False),
        ([2, 2.0, "a"], False),
        ([1, 2.0, "b"], False),
        ([1, 2.0], False),
        ([1, 2.0, "a", 0], False),
        ([1, float("nan"), "a"], False),
        ([1.0, 2.0, "a"], False),
    ],
)
def test_what_counts_as_the_same_numbers(actual: list, is_same: bool):
    assert same_numbers(actual, [1, 2.0, "a"]) is is_same


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of golden.json to record into."""
    file = tmp_path / "golden.json"
    file.write_bytes(golden.FILE.read_bytes())
    monkeypatch.setattr(golden, "FILE", file)
    return file


def test_recording_does_not_hide_numbers_that_moved(copied: Path, monkeypatch: pytest.MonkeyPatch):
    before = copied.read_bytes()
    perturb(monkeypatch, "server:average", *PERTURBATIONS["server"])
    record()
    assert copied.read_bytes() == before
    assert complaint("server:average", read()) == MOVED.format("server:average")


def test_recording_takes_the_new_and_forgets_the_gone(
    copied: Path, monkeypatch: pytest.MonkeyPatch
):
    before, key = read(), "server:average"
    changed = before | {"selector:gone": {"science": 1, "numbers": []}}
    del changed["partition:iid"]
    copied.write_text(json.dumps(changed))
    monkeypatch.setattr(component(key), "science", before[key]["science"] + 1)
    perturb(monkeypatch, key, *PERTURBATIONS["server"])
    record()
    after = read()
    assert set(after) == set(before)
    assert after["partition:iid"] == before["partition:iid"]
    assert after[key]["science"] == before[key]["science"] + 1
    assert not same_numbers(after[key]["numbers"], before[key]["numbers"])
    assert complaint(key, after) is None
