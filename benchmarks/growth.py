"""W6: how time scales with clients per round, network size and cells per study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import work
from benchmarks.contest import FLOWER, OURS_PER_MACHINE, PLAIN, Outcome, contest
from benchmarks.picture import Curve, Panel, draw
from benchmarks.planning import Planning, plan_cells
from benchmarks.sweeps import Summary
from benchmarks.tables import Section, number, table
from benchmarks.workloads import Workload

ENTRIES = (OURS_PER_MACHINE, PLAIN, FLOWER)
CLIENTS = Workload(
    name="clients",
    title="Clients per round",
    model="lenet5",
    shape=(1, 32, 32),
    classes=10,
    J="J4",
    clients=1000,
    size=50,
    batch=16,
    rounds=2,
)
COHORTS = (10, 30, 100, 300, 1000)
NETWORK = Workload(
    name="network",
    title="Network size",
    model="lenet5",
    shape=(3, 32, 32),
    classes=10,
    J="J2",
    batch=32,
    rounds=2,
)
NETWORKS = ("small-mlp", "small-cnn", "lenet5", "aml-lenet", "vgg11")
CELLS = (1_000, 5_000, 20_000)
OURS = "Cohort"


@dataclass(frozen=True)
class Point:
    """A workload, the size and FLOPs of its network, and its measurements."""

    workload: Workload
    facts: Mapping[str, int]
    outcome: Outcome


def measure(tiny: bool, picture: Path | None, folder: Path) -> Section:
    """Measure how the time of a round scales with its clients and with the network's size, and the
    time of a dry run with the number of cells; draw the curves into `picture`, if given."""
    by_clients = [
        _measured(replace(CLIENTS, cohort=cohort), folder)
        for cohort in (COHORTS[:1] if tiny else COHORTS)
    ]
    by_network = [
        _measured(replace(NETWORK, model=model), folder)
        for model in (NETWORKS[:2] if tiny else NETWORKS)
    ]
    planning = plan_cells(CELLS[:1] if tiny else CELLS, 2, folder)
    section = Section("W6: Growth", goals=planning.goals(), failures=planning.failures)
    for point in (*by_clients, *by_network):
        section.failures += [
            line for line in point.outcome.problems() if line not in section.failures
        ]
    section.text = [
        _sentence("Seconds per round against clients per round", CLIENTS, f"`{CLIENTS.model}`"),
        _table(["clients"], {(str(point.workload.cohort),): point.outcome for point in by_clients}),
        _sentence(
            "Seconds per round against network size",
            NETWORK,
            f"{NETWORK.cohort} clients",
        ),
        _table(
            ["network", "weights", "MFLOP per image"],
            {_network(point): point.outcome for point in by_network},
        ),
        "Dry runs (`snakemake -n -q`) of a study, and of a bare Snakefile with as many jobs that "
        "run one script:",
        planning.table(),
    ]
    if picture is not None:
        draw(_panels(by_clients, by_network, planning), picture)
        section.text.insert(
            0,
            "![Seconds against clients per round, MFLOP per image and cells per study]"
            f"(images/{picture.name})",
        )
    return section


def _measured(workload: Workload, folder: Path) -> Point:
    here = folder / f"{workload.name}-{workload.model}-{workload.cohort}"
    return Point(
        workload,
        work.draw_and_count(workload, here),
        contest(ENTRIES, here, workload.rounds, alone=False),
    )


def _network(point: Point) -> tuple[str, ...]:
    return point.workload.model, f"{point.facts['weights']:,}", number(point.facts["forward"] / 1e6)


def _sentence(what: str, load: Workload, where: str) -> str:
    shape = "x".join(map(str, load.shape))
    return (
        f"{what}: {where}, images of {shape}, {load.steps} local steps with batch size "
        f"{load.batch}, median of {load.rounds} rounds."
    )


def _table(titles: Sequence[str], outcomes: Mapping[tuple[str, ...], Outcome]) -> str:
    rows = []
    for names, outcome in outcomes.items():
        medians = [number(_median(outcome, entry.title)) for entry in ENTRIES]
        rows.append(
            [
                *names,
                *medians,
                *(number(outcome.ratio(entry, OURS_PER_MACHINE)) for entry in ENTRIES[1:]),
            ]
        )
    return table(
        [
            *titles,
            *(f"{entry.title}, s" for entry in ENTRIES),
            "speedup vs plain",
            "speedup vs Flower",
        ],
        rows,
    )


def _median(outcome: Outcome, title: str) -> float | None:
    return Summary.of(outcome.seconds[title]).median if title in outcome.seconds else None


def _panels(
    by_clients: Sequence[Point], by_network: Sequence[Point], planning: Planning
) -> list[Panel]:
    ours = [(cells, Summary.of(taken).median) for cells, (taken, _) in planning.seconds.items()]
    bare = [(cells, Summary.of(taken).median) for cells, (_, taken) in planning.seconds.items()]
    clients = _curves([(point.workload.cohort, point.outcome) for point in by_clients])
    network = _curves([(point.facts["forward"] / 1e6, point.outcome) for point in by_network])
    return [
        Panel("Clients per round", "Seconds per round", clients),
        Panel("MFLOP per image", "Seconds per round", network),
        Panel(
            "Cells per study",
            "Seconds per dry run",
            [Curve(OURS, ours), Curve("bare Snakefile", bare)],
        ),
    ]


def _curves(outcomes: Sequence[tuple[float, Outcome]]) -> list[Curve]:
    curves = []
    for entry in ENTRIES:
        points = [
            (x, _median(outcome, entry.title))
            for x, outcome in sorted(outcomes, key=lambda pair: pair[0])
        ]
        curves.append(
            Curve(
                OURS if entry is OURS_PER_MACHINE else entry.title,
                [(x, y) for x, y in points if y is not None],
            )
        )
    return curves
