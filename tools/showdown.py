"""`python -m tools.showdown`: the findings and tables of docs/showdown.md.

The tables are worked out from the released runs alone, without restoring them; the findings are
those that the study states.
"""

from __future__ import annotations

import pandas as pd

from benchmarks.tables import NOTHING, put_section, table
from cohort.core.paths import RELEASED
from cohort.plan import Plan, load
from cohort.results.series import runs_without
from cohort.results.statistics import Scores, Standings, standings_of, values_left_out
from cohort.results.tables.tabulate import rank_text
from tools.study import ROOT

COMMAND = "python -m tools.showdown"
STUDY = "showdown"
PAGE = ROOT / "docs" / "showdown.md"
LAST = 10  # the rounds whose evaluations are averaged
COSTS = ("simulated_seconds", "bytes_down")
TITLES = (
    *("rank", "mean rank", "selector", "accuracy %", "minus random", "ahead of random %"),
    *("s/round", "kB/round", "Gini"),
)


def leaderboards(plan: Plan) -> list[str]:
    """The leaderboards by accuracy that have released runs."""
    tables = plan.study(STUDY).tables
    return [
        name
        for name, spec in tables.items()
        if spec.get("kind") == "leaderboard"
        and spec["metric"] == "test_accuracy"
        and len(_released(plan, spec["experiment"]))
    ]


def leaderboard(plan: Plan, name: str) -> tuple[Standings, pd.DataFrame]:
    """The standings of a leaderboard, and its runs with what each cost."""
    spec = plan.study(STUDY).tables[name]
    runs = _measured(plan, spec["experiment"])
    runs = runs_without(runs, values_left_out(spec.get("without")))
    return standings_of(Scores.of(runs), runs), runs


def _measured(plan: Plan, experiment: str) -> pd.DataFrame:
    """The released runs of an experiment, with their settings, accuracies and costs."""
    labels = _released(plan, experiment)
    apart = [name for name in labels if name not in ("digest", "strategy", "seed")]
    runs = labels.assign(setting=labels[apart].astype(str).agg(", ".join, axis=1), apart="")
    return runs.merge(_runs(), on="digest", validate="one_to_one").merge(_values(), on="digest")


def _released(plan: Plan, experiment: str) -> pd.DataFrame:
    """The labels of an experiment's runs, of those strategies of which all are released."""
    rows = plan.study(STUDY).experiments[experiment].rows
    labels = pd.DataFrame([row.labels | {"digest": row.digest} for row in rows])
    is_released = labels["digest"].isin(_runs()["digest"])
    return labels[is_released.groupby(labels["strategy"]).transform("all")]


def _runs() -> pd.DataFrame:
    return pd.read_parquet(ROOT / RELEASED / STUDY / "runs.parquet")[["digest", "rounds_played"]]


def _values() -> pd.DataFrame:
    """A table of each run's accuracy over the last rounds, its costs per round, and the Gini
    coefficient of its clients' turns."""
    folder = ROOT / RELEASED / STUDY
    curves = pd.read_parquet(folder / "curves.parquet").merge(_runs(), on="digest")
    is_last = curves["round"] > curves["rounds_played"] - LAST
    accuracy = curves[(curves["metric"] == "test_accuracy") & is_last]
    values = {"value": accuracy.groupby("digest")["value"].mean()}
    for cost in COSTS:
        values[cost] = curves[curves["metric"] == cost].groupby("digest")["value"].mean()
    turns = pd.read_parquet(folder / "clients.parquet").groupby("digest")["selected"]
    values["gini"] = turns.agg(_gini)
    return pd.DataFrame(values).rename_axis("digest").reset_index()


def _gini(turns: pd.Series) -> float:
    """The Gini coefficient: half the mean difference between two clients, over their mean."""
    differences = turns.to_numpy()[:, None] - turns.to_numpy()
    return float(abs(differences).mean() / (2 * turns.mean()))


def markdown(plan: Plan, name: str) -> str:
    """A leaderboard as a Markdown table, with a sentence if it is no ranking."""
    standings, runs = leaderboard(plan, name)
    means = runs.groupby("strategy")[["simulated_seconds", "bytes_down", "gini"]].mean()
    rows = []
    for standing in standings.entries:
        mean, apart, ahead = means.loc[standing.strategy], standing.difference, standing.ahead
        ends = apart.interval if apart and apart.interval else ()
        interval = ", ".join(f"{100 * end:.2f}" for end in ends)
        rows.append(
            [
                NOTHING if standings.no_ranking else rank_text(standing),
                f"{standing.mean_rank:.1f}",
                plan.strategies[standing.strategy]["title"],
                f"{100 * standing.score.value:.2f}",
                f"{100 * apart.value:+.2f} [{interval}]" if apart else NOTHING,
                f"{100 * ahead.value:.0f}" if ahead else NOTHING,
                f"{mean['simulated_seconds']:.1f}",
                f"{mean['bytes_down'] / 1000:.0f}",
                f"{mean['gini']:.2f}",
            ]
        )
    return "\n\n".join(filter(None, [table(list(TITLES), rows), standings.no_ranking]))


def accuracies_by_setting(plan: Plan, name: str) -> str:
    """A Markdown table of the mean accuracy of each selector, in a leaderboard's order, in each
    setting of its experiment."""
    standings, _ = leaderboard(plan, name)
    runs = _measured(plan, plan.study(STUDY).tables[name]["experiment"])
    runs["partition"] = runs["partition"].replace(plan.study(STUDY).titles.get("partition", {}))
    axes = [axis for axis in ("partition", "clients") if axis in runs]
    runs["column"] = runs[axes].astype(str).agg(", ".join, axis=1)
    means = 100 * runs.groupby(["strategy", "column"])["value"].mean()
    columns = list(runs["column"].unique())
    rows = []
    for standing in standings.entries:
        accuracies = [f"{means[standing.strategy, column]:.2f}" for column in columns]
        rows.append([plan.strategies[standing.strategy]["title"], *accuracies])
    return table(["selector", *columns], rows)


def update(text: str) -> str:
    """The page with findings, and the tables of all leaderboards, between its markers."""
    plan = load({"studies": STUDY})
    numbered = enumerate(plan.study(STUDY).findings, start=1)
    findings = "\n".join(f"{number}. {finding['text']}" for number, finding in numbered)
    text = put_section(text, "findings", findings, COMMAND)
    parts = []
    for name in leaderboards(plan):
        parts += [f"**{plan.study(STUDY).tables[name]['title']}**", markdown(plan, name)]
        parts += ["Mean accuracy % by setting:", accuracies_by_setting(plan, name)]
    return put_section(text, "leaderboards", "\n\n".join(parts), COMMAND)


if __name__ == "__main__":
    PAGE.write_text(update(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
