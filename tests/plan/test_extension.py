"""Experiments that extend one of another study, and names of the user's own folder."""

from pathlib import Path

import pytest
import yaml

from cohort.core.errors import UserError
from cohort.plan import drawn_names, load
from cohort.plan.expansion import with_strategies

MINE = {"title": "Mine", "selector": {"name": "entropy", "buffer": 0.3}}


def write(file: str, content: object) -> None:
    path = Path("my", file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content))


def extend(base: str, **keys: object) -> None:
    block = {"extends": base, "strategy": ["+mine"]} | keys
    write("studies/beside.yaml", {"title": "Beside", "experiments": {"main": block}})


@pytest.fixture
def own_strategy(project: Path) -> None:
    write("strategies.yaml", {"mine": MINE})


def rows(study: str, experiment: str, scale: str) -> dict[str, tuple[dict, float]]:
    result = load({"studies": study, "scale": scale}).study(study).experiments[experiment].rows
    return {row.digest: (row.labels, row.share) for row in result}


@pytest.mark.parametrize("scale", ["full", "reduced", "smoke"])
@pytest.mark.parametrize("base", ["demo.main", "fedentopt.baselines", "fedentopt.rates_and_ten"])
def test_the_cells_are_those_of_the_extended_experiment_and_the_added_ones(
    base: str, scale: str, own_strategy: None
):
    """The same digests at every scale; the added strategy where FedAvg is, at full scale once for each of its cells."""
    extend(base)
    extended, source = rows("beside", "main", scale), rows(*base.split("."), scale)
    assert {digest: extended[digest] for digest in source} == source
    added = [labels for digest, (labels, _) in extended.items() if digest not in source]
    assert {labels["strategy"] for labels in added} == {"mine"}
    if scale == "full":
        fedavg = [labels for labels, _ in source.values() if labels["strategy"] == "fedavg"]
        assert added == [labels | {"strategy": "mine"} for labels in fedavg]


def test_overrides_of_other_strategies_do_not_reach_an_added_one(own_strategy: None):
    """FedConcat's procedure stays its own, LeNet's schedule of evaluations is everyone's."""
    extend("fedentopt.baselines")
    plan = load({"studies": "beside"})
    cells = [cell.plain_settings() for cell in plan.cells.values()]
    own = [cell for cell in cells if cell["strategy"] == "mine"]
    fedavg = [cell for cell in cells if cell["strategy"] == "fedavg"]
    assert {cell["procedure"] for cell in own} == {"federated"}
    assert {cell["selector"]["buffer"] for cell in own} == {0.3}
    protocols = {(cell["model"], cell["evaluate_every"]) for cell in fedavg}
    assert {(cell["model"], cell["evaluate_every"]) for cell in own} == protocols
    assert len(protocols) == 2


def test_figures_tables_and_the_papers_values_come_along(own_strategy: None):
    extend("fedentopt.baselines")
    source = load({"studies": "fedentopt"}).study("fedentopt")
    expected = {k for k, spec in source.drawn_items().items() if spec["experiment"] == "baselines"}
    study = load({"studies": "beside"}).study("beside")
    assert set(study.drawn_items()) == expected == set(drawn_names("beside"))
    spec = study.tables["tab1"]
    assert spec["experiment"] == "main"
    assert study.paper_file(spec) == Path("resources/paper_values/fedentopt.csv")


def test_an_own_figure_stands_in_place_of_the_extended_one(own_strategy: None):
    extend("demo.main")
    study = yaml.safe_load(Path("my/studies/beside.yaml").read_text())
    study["figures"] = {"fig1": {"experiment": "main", "kind": "curves", "metric": "test_loss"}}
    study["figures"]["fig1"] |= {"columns": "partition", "rows": "J"}
    write("studies/beside.yaml", study)
    result = load({"studies": "beside"}).study("beside")
    assert result.figures["fig1"]["metric"] == "test_loss" and "tab1" in result.tables


def test_where_fedavg_is_missing_the_first_strategy_sets_the_protocol():
    cells = [
        {"strategy": "probe", "selector.alpha": 0.2, "J": "J4"},
        {"strategy": "probe", "selector.alpha": 0.8, "J": "J4"},
        {"strategy": "kl", "J": "J9"},
    ]
    assert with_strategies(cells, ["mine"], None)[3:] == [{"strategy": "mine", "J": "J4"}]


def test_a_series_of_strategies_gets_one_more():
    cells = [{"series": "FedAvg", "strategy": "fedavg"}, {"series": "KL", "strategy": "kl"}]
    assert with_strategies(cells, ["mine"], None)[2:] == [{"series": "mine", "strategy": "mine"}]
    cells = [{"series": "C = 2", "strategy": name} for name in ("fedavg", "kl")]
    assert with_strategies(cells, ["mine"], None)[2:] == [{"series": "C = 2", "strategy": "mine"}]


@pytest.mark.parametrize(
    ("base", "keys", "sentence"),
    [
        ("dem.main", {}, "there is no study 'dem'; did you mean 'demo'?"),
        ("demo.min", {}, "demo has no experiment 'min'; did you mean 'main'?"),
        ("demo", {}, "does not match"),
        ("demo.main", {"strategy": ["mine"]}, "did you mean '+mine'?"),
        ("demo.main", {"strategy": ["+fedavg"]}, "'fedavg', which the experiment has already"),
        ("beside.main", {}, "extends beside.main itself"),
        ("demo.main", {"axes": {"J": ["J1"]}}, "experiments.main"),
    ],
)
def test_a_wrong_extension_is_one_sentence(
    base: str, keys: dict, sentence: str, own_strategy: None
):
    extend(base, **keys)
    with pytest.raises(UserError) as error:
        load({"studies": "beside"})
    assert sentence in str(error.value) and "my/studies/beside.yaml" in str(error.value)


def test_names_of_built_in_strategies_studies_and_data_sets_are_taken(project: Path):
    write("strategies.yaml", {"fedavg": MINE})
    with pytest.raises(UserError, match=r"^my/strategies.yaml: fedavg is in config/strategies"):
        load()
    Path("my/strategies.yaml").unlink()
    write("studies/demo.yaml", {"title": "Demo"})
    with pytest.raises(UserError, match=r"^my/studies/demo.yaml: config/studies/demo.yaml has"):
        load()
