"""`python -m tools.showdown`: the findings and tables of docs/showdown.md, from the released runs."""

from collections.abc import Mapping

from benchmarks.tables import NOTHING, put_section, table
from cohort.plan import Plan
from cohort.results import series, statistics
from cohort.results.comparison import Comparison
from cohort.results.statistics import Standing, Standings
from tools.findings import headlined, rank_text
from tools.study import ROOT, compared_table, released

COMMAND = "python -m tools.showdown"
STUDY, STRATEGY = "showdown", "strategy"
PAGE = ROOT / "docs" / "showdown.md"
COSTS = {"simulated_seconds": (1, 1), "bytes_down": (1e-3, 0), "selection_gini": (1, 2)}
"""The unit and the digits in which the page has the mean of each."""
TITLES = "rank|mean rank|selector|accuracy %|minus random|ahead of random %|s/round|kB/round|Gini"


def leaderboard(plan: Plan, board: Comparison, standings: Standings) -> str:
    """A leaderboard as a Markdown table, with a sentence if it is no ranking."""
    means = {(row.labels[STRATEGY], row.metric): row.sample.mean for row in board.results}
    rows = []
    for standing in standings.entries:
        name = standing.strategy
        costs = (f"{means[name, cost] * unit:.{digits}f}" for cost, (unit, digits) in COSTS.items())
        rank = NOTHING if standings.no_ranking else rank_text(standing)
        title = plan.strategies[name]["title"]
        rows.append([rank, f"{standing.mean_rank:.1f}", title, *_accuracies(standing), *costs])
    return "\n\n".join(filter(None, [table(TITLES.split("|"), rows), standings.no_ranking]))


def _accuracies(standing: Standing) -> list[str]:
    """A selector's accuracy, its difference from random selection's, and how often it is ahead."""
    apart, ahead = standing.difference, standing.ahead
    ends = ", ".join(f"{100 * end:.2f}" for end in (apart and apart.interval) or ())
    return [
        f"{100 * standing.score:.2f}",
        f"{100 * apart.value:+.2f} [{ends}]" if apart else NOTHING,
        f"{100 * ahead.value:.0f}" if ahead else NOTHING,
    ]


def means_by_setting(plan: Plan, name: str, standings: Standings) -> str:
    """A Markdown table of the mean accuracy of each selector, in a leaderboard's order, in each
    setting of its experiment."""
    study, spec = plan.study(STUDY), plan.study(STUDY).tables[name]
    metrics = series.read_metric(plan.layout.metrics(STUDY, spec["experiment"]), spec["metric"])
    metrics = metrics.replace({"partition": study.titles.get("partition", {})})
    runs = statistics.runs_by_setting(metrics, spec["metric"], spec["at"], [STRATEGY])
    means = 100 * runs.pivot_table("value", STRATEGY, "setting")
    formatted = means.loc[[entry.strategy for entry in standings.entries]].map("{:.2f}".format)
    lines = [[plan.strategies[name]["title"], *row] for name, *row in formatted.itertuples()]
    return table(["selector", *means.columns], lines)


def side_by_side(plan: Plan, boards: Mapping[str, Standings]) -> str:
    """The mean ranks of the same selectors on several leaderboards, by their names, and their
    differences from random selection, in one Markdown table."""
    rows: dict[str, list[str]] = {}
    for standing in (standing for board in boards.values() for standing in board.entries):
        row = rows.setdefault(standing.strategy, [plan.strategies[standing.strategy]["title"]])
        row += [f"{standing.mean_rank:.1f}", _accuracies(standing)[1]]
    titles = (f"{title}, {name}" for name in boards for title in ("mean rank", "minus random"))
    return table(["selector", *titles], list(rows.values()))


def update(text: str) -> str:
    """The page with its findings and the leaderboards of selectors whose runs are all released."""
    parts, absence = [], {}
    with released(STUDY) as plan:
        study = plan.study(STUDY)
        for name, spec in study.tables.items():
            if spec.get("kind") != "leaderboard" or spec["metric"] != "test_accuracy":
                continue
            board = compared_table(plan, STUDY, name)
            standings = board.standings
            assert standings
            if spec["experiment"] == "availability":
                absence[name.replace("_", " ")] = standings
            elif all(result.finished in (0, result.planned) for result in board.results):
                parts += [f"**{spec['title']}**", leaderboard(plan, board, standings)]
                parts += ["Mean accuracy % by setting:", means_by_setting(plan, name, standings)]
        parts += ["**Where clients are absent**", side_by_side(plan, absence)]
    findings = []
    for number, finding in enumerate(study.findings, start=1):
        names = dict.fromkeys(reference.split(", ")[0] for reference in finding["rests_on"])
        verbs = {name: "make figure" if name in study.tables else "cohort check" for name in names}
        commands = ", ".join(f"`{verb} {STUDY}.{name}`" for name, verb in verbs.items())
        findings.append(f"{number}. {headlined(finding['text'])} ({commands})")
    text = put_section(text, "findings", "\n".join(findings), COMMAND)
    return put_section(text, "leaderboards", "\n\n".join(parts), COMMAND)


if __name__ == "__main__":
    PAGE.write_text(update(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
