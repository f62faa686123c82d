"""Settings that procedures refuse when they are planned, each in one sentence."""

from typing import Any

import pytest

from cohort.core.errors import UserError
from cohort.selection.entropy import Entropy
from cohort.selection.pools import Probe
from cohort.selection.simple import HighestLoss
from cohort.training.objectives import FedProx
from cohort.training.procedures import parse_procedure
from cohort.training.servers import SERVERS, FedNova, Momentum, Scaffold
from tests.training.small_task import small_cell

COSINE = ({"schedule": "cosine"}, "follows lr_decay, not the schedule 'cosine'")
DROPOUT = ({"participation": "dropout-0.3"}, "no use for the participation 'dropout-0.3'")
DECAYED = ({"lr_decay": 0.5}, "no use for lr_decay 0.5")
PLATEAU = ({"schedule": "plateau"}, "no validation loss by round, as 'plateau' needs")
EPOCHS = ({"J": "J2e"}, "J is J2e, not J1e")
ENTROPY = ({"selector": Entropy()}, "no use for the selector 'entropy'")
DEFAULTS = {"J": "J1e", "batch": 1, "rounds": 3, "clients": 4, "cohort": 4}
ONE = {"clients": 1, "cohort": 1, "schedule": "cosine", "validation": 5}
REFUSED: dict[str, tuple[dict[str, Any], list[tuple[dict[str, Any], str]]]] = {
    "federated": ({}, [COSINE]),
    "fedtan": (
        {"model": "resnet20"},
        [
            COSINE,
            ({"model": "lenet5"}, "shares batch normalization, which the model 'lenet5' lacks"),
            ({"model": "resnet9-gn"}, "which the model 'resnet9-gn' lacks"),
            ({"optimizer": "adam"}, "trains clients by SGD, but optimizer is 'adam'"),
            ({"server": FedNova()}, "not by the server rule 'fednova'"),
            ({"selector": Probe()}, "takes no selector that probes, as 'probe' does"),
        ],
    ),
    "concat-4": (
        {},
        [
            COSINE,
            ({"clients": 3}, "makes 4 clusters of only 3 clients"),
            ({"rounds": 1}, "rounds must be at least 2"),
            ({"server": Momentum()}, "not by the server rule 'momentum'"),
            ({"participation": "dropout-0.3"}, "no use for participation 'dropout-0.3'"),
            ({"selector": HighestLoss()}, "label counts at most, not 'loss'"),
        ],
    ),
    "centralized": (
        ONE,
        [
            *(DROPOUT, DECAYED, EPOCHS),
            ({"clients": 2}, "clients and cohort must be 1"),
            ({"cohort": 2}, "clients and cohort must be 1"),
            ({"schedule": "plateau", "validation": 0}, "needs validation samples"),
            ({"objective": FedProx()}, "no use for the objective 'fedprox'"),
            ({"server": Momentum()}, "no use for the server 'momentum'"),
        ],
    ),
    "stratified-single": (
        {},
        [*(COSINE, EPOCHS), ({"batch": 2}, "batch is 2"), ({"momentum": 0.9}, "without momentum")],
    ),
    "stratified-batch": ({}, [DROPOUT, DECAYED, PLATEAU, ({"cohort": 2}, "cohort is 2")]),
    "stratified-hybrid-3": (
        {},
        [DECAYED, EPOCHS, PLATEAU, ({"rounds": 2}, "3 epochs of batches, but")],
    ),
    "sequential": ({}, [COSINE, ENTROPY, ({"server": Scaffold()}, "server 'scaffold'")]),
}


@pytest.mark.parametrize("procedure", REFUSED)
def test_unsuitable_settings_are_refused(procedure: str):
    overrides, refused = REFUSED[procedure]
    settings = DEFAULTS | {"procedure": procedure} | overrides
    suitable = small_cell(**settings)
    suitable.procedure.check(suitable)
    for change, sentence in refused:
        with pytest.raises(ValueError) as caught:
            suitable.procedure.check(small_cell(**(settings | change)))
        assert sentence in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"optimizer": "adam"}, "assumes steps of SGD, but optimizer is 'adam'"),
        ({"selector": Probe()}, "assumes steps at once, but 'probe' probes clients"),
    ],
)
def test_rules_that_read_gradients_off_updates_refuse_adam_and_probes(
    server: str, changes: dict[str, Any], sentence: str
):
    cell = small_cell(server=SERVERS[server](), **changes)
    if server not in ("fednova", "scaffold"):
        return cell.procedure.check(cell)
    with pytest.raises(ValueError, match=f"with the server rule '{server}' {sentence}"):
        cell.procedure.check(cell)
    return None


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("concat", "[-stepsN][-balancedN][-warmN][-continuedN], clusters being a whole number"),
        ("concat-5-classifier1", "classifier is 1, but must be below 1"),
        ("concat-5-balanced2", "balanced is 2, but must be at most 1"),
    ],
)
def test_wrong_names_are_refused(name: str, sentence: str):
    with pytest.raises(UserError) as caught:
        parse_procedure(name)
    assert str(caught.value).startswith(f"procedure '{name}' is not of the form concat-CLUSTERS")
    assert sentence in str(caught.value) and "\n" not in str(caught.value)
