"""Statistics of results: intervals of means by Student's t, exact sign tests, Holm's correction for
several of them, and whether our runs agree with the number that a paper prints; and strategies
compared across settings, which are everything about a run but its strategy and seed.

As in rliable (Agarwal et al., 2021) the bootstrap draws seeds within each setting, and it draws the
same ones for all strategies, whose runs of a seed share shards and initial weights. So intervals
say what other seeds would change, not what other settings would. Standings are Demšar's (2006):
strategies are ranked within each setting by their means over seeds, Friedman's test asks whether
they differ at all, and Nemenyi's which ones do. Planning imports this module without pandas.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from cohort.core import UserError, lazy
from cohort.results.names import BASELINE, FREE, METRICS, PANEL, listed, word
from cohort.results.series import label_columns, label_text, value_per_cell

if TYPE_CHECKING:
    from pandas import DataFrame

pd, special, stats = lazy("pandas"), lazy("scipy.special"), lazy("scipy.stats")

ALPHA = 0.05
MIN_SEEDS = 3  # fewer say nothing
NOT_ENOUGH = "not enough runs"  # the verdict on fewer than MIN_SEEDS
ENOUGH_SEEDS = 5  # fewer only lean: the sign test needs five on one side
MARGIN = 0.02  # two points of accuracy
JUDGED = ("%", "points")
"""The units of accuracies and of their differences; numbers in other units get no verdict."""
Verdict = Literal["agrees", "differs", "cannot tell"]
# The level of the F test of a printed deviation. At 5 % three seeds mostly overlook one that is
# three times too small; one that is right loses little by being doubted.
DOUBT = 0.4
DIGITS = 9  # of what is compared, so that 46.61 - 44.61 is 2 and not a little more
RESAMPLES = 5000
MIN_STRATEGIES, MIN_SETTINGS = 3, 2  # of Friedman's test
WITHOUT_HELP = "labels with the value, or the values, whose runs do not count: {partition: iid}"


@dataclass(frozen=True)
class Sample:
    """The mean and the standard deviation (with n - 1) of n values, one per run or per pair, and
    how many of them are above and below 0."""

    unit: ClassVar[str] = "seeds"  # what the values are of

    n: int
    mean: float
    sd: float
    above: int = 0
    below: int = 0

    @classmethod
    def of(cls, values: Sequence[float] | np.ndarray | float) -> Sample:
        """Summarize values; a single one has no standard deviation."""
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
        n = len(array)
        mean = float(array.mean()) if n else math.nan
        sd = float(array.std(ddof=1)) if n > 1 else math.nan
        sd = 0.0 if n > 1 and np.ptp(array) == 0 else sd
        return Sample(n, mean, sd, int((array > 0).sum()), int((array < 0).sum()))

    def __neg__(self) -> Sample:
        return Sample(self.n, -self.mean, self.sd, self.below, self.above)

    def scaled(self, factor: float) -> Sample:
        """The sample with its values multiplied by `factor`, in another unit."""
        return replace(self, mean=self.mean * factor, sd=self.sd * factor)

    def half_width(self, level: float = ALPHA) -> float:
        """How far the interval of confidence 1 - `level` reaches to each side of the mean."""
        if self.n < 2:
            return math.inf
        return float(special.stdtrit(self.n - 1, 1 - level / 2)) * self.sd / math.sqrt(self.n)

    def interval(self, level: float = ALPHA) -> tuple[float, float]:
        """The interval of confidence 1 - `level` for the mean."""
        half = self.half_width(level)
        return self.mean - half, self.mean + half

    def verdict(self, better: str) -> str:
        """The verdict on a difference from 0, `better` or `worse`, leaning so, or `undecided`,
        where high or low values are better."""
        if self.n < MIN_SEEDS:
            return NOT_ENOUGH
        ahead = self if better == "high" else -self
        for side, sample in (("better", ahead), ("worse", -ahead)):
            if better and sample.p_above() <= ALPHA:
                return side if self.n >= ENOUGH_SEEDS else f"leans {side}"
        return "undecided"

    def p_value(self) -> float:
        """The two-sided p-value of the hypothesis that the mean is 0."""
        return min(1.0, 2 * min(self._t_test(), (-self)._t_test()))

    def p_above(self) -> float:
        """The one-sided p-value of the hypothesis that the typical value is not above 0: the larger
        of those of the t-test and, from ENOUGH_SEEDS values on, of the exact sign test."""
        return self._t_test() if self.n < ENOUGH_SEEDS else max(self._t_test(), self._sign_test())

    def _t_test(self) -> float:
        if self.n < 2 or self.mean == 0:
            return 1.0
        if self.sd == 0:
            return float(self.mean < 0)
        return float(special.stdtr(self.n - 1, -self.mean / self.sd * math.sqrt(self.n)))

    def _sign_test(self) -> float:
        """The probability of so many values above 0, or more, if half are; a tie is not above."""
        return float(special.bdtrc(self.above - 1, self.n, 0.5))


@dataclass(frozen=True)
class SignedRanks(Sample):
    """One difference per setting. Their center is above 0 if two tests say so: Wilcoxon's of signed
    ranks, exact with ties too, and the sign test, which does not assume symmetry."""

    unit: ClassVar[str] = "settings"

    values: tuple[float, ...] = ()

    @classmethod
    def of(cls, values: Sequence[float] | np.ndarray | float) -> SignedRanks:
        array = np.atleast_1d(np.asarray(values, dtype=float))
        return cls(**vars(Sample.of(array)), values=tuple(array.tolist()))

    def __neg__(self) -> SignedRanks:
        return SignedRanks.of([-value for value in self.values])

    def p_above(self) -> float:
        """The one-sided p-value that the center is not above 0: the larger one of both tests."""
        differences = np.array([value for value in self.values if value])  # 0 has no rank
        ranks = np.round(2 * stats.rankdata(np.abs(differences))).astype(int)  # halves as wholes
        signings = _count_signings(ranks)
        by_ranks = signings[ranks[differences > 0].sum() :].sum() / signings.sum()
        return max(float(by_ranks), self._sign_test())

    def interval(self, level: float = ALPHA) -> tuple[float, float]:
        """The interval of the center: the wider ends of the signed-rank test's, over means of two
        differences each, and of the sign test's, over the differences themselves."""
        array = np.array(self.values)
        means = (array[:, None] + array)[np.triu_indices(self.n)] / 2
        ends = []
        for ordered, ranks in ((means, np.arange(1, self.n + 1)), (array, np.ones(self.n, int))):
            signings = _count_signings(ranks)
            left_out = int((np.cumsum(signings) / signings.sum() <= level / 2 + 1e-12).sum())
            padded = np.sort(np.append(ordered, [-np.inf, np.inf]))
            ends.append((float(padded[left_out]), float(padded[-1 - left_out])))
        return min(low for low, _ in ends), max(high for _, high in ends)


def _count_signings(ranks: np.ndarray) -> np.ndarray:
    """Count the ways to sign these ranks so that the positive ones add up to 0, 1, 2, and so on."""
    counts = np.ones(1)
    for rank in ranks:
        counts = np.pad(counts, (0, rank)) + np.pad(counts, (rank, 0))
    return counts


def paired_differences(ours: Mapping[str, float], theirs: Mapping[str, float]) -> Sample:
    """The differences ours - theirs over the seeds that both have, as a sample."""
    return Sample.of([ours[seed] - theirs[seed] for seed in ours if seed in theirs])


def holm_levels(p_values: Sequence[float]) -> list[float]:
    """The level at which Holm's procedure tests each hypothesis, so that all decisions together
    are wrong with a probability of at most ALPHA.

    A hypothesis is rejected if its p-value is at most its level: an interval of confidence
    1 - level around its mean then lies on one side of 0.
    """
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    levels, last = [ALPHA] * len(p_values), 0.0  # the level of the first that is not rejected
    for rank, index in enumerate(order):
        levels[index] = last or ALPHA / (len(p_values) - rank)
        if not last and p_values[index] > levels[index]:
            last = levels[index]
    return levels


def margin_of(printed: float, unit: str) -> float:
    """The largest difference from a printed accuracy, or difference of accuracies, that agrees: two
    points, but at most half of the distance from the number to the nearer end of its scale. Where a
    paper prints 1 % of errors, 2 % are not the same result."""
    return min(MARGIN, (printed - (0.0 if unit == "%" else -1.0)) / 2, (1 - printed) / 2)


def agreement(
    ours: Sequence[float], paper: float, sd: float | None = None, runs: int = 1, *, margin: float
) -> tuple[tuple[float, float] | None, Verdict | None]:
    """The 95 % interval of the difference between our mean and the one that a paper prints of so
    many runs, with their deviation if it says so, and the verdict; None without a finite one. They
    agree if the 90 % interval lies within the margin (two one-sided tests), differ if the 95 %
    interval lies outside it, and otherwise our runs cannot tell."""
    sample = Sample.of(ours)
    difference = sample.mean - paper
    if sample.n < 2 or not math.isfinite(difference):
        return None, None
    error, freedom = _standard_error(sample, sd, runs)
    half = error * float(special.stdtrit(freedom, 1 - ALPHA / 2))
    inner = error * float(special.stdtrit(freedom, 1 - ALPHA))
    verdict: Verdict = "cannot tell"
    if error or sample.n >= ENOUGH_SEEDS:  # few runs may be equal by chance
        if round(abs(difference) + inner - margin, DIGITS) <= 0:
            verdict = "agrees"
        elif round(abs(difference) - half - margin, DIGITS) > 0:
            verdict = "differs"
    return (difference - half, difference + half), verdict


def _standard_error(ours: Sample, sd: float | None, runs: int) -> tuple[float, float]:
    """The standard error of our mean less the paper's, and its degrees of freedom.

    The degrees of freedom are Welch's, but never more than ours alone. The paper's own error counts
    if it rests on three runs and an F test does not find ours so much larger that theirs is of
    another kind: papers print deviations over the last rounds of a run, or 0.00. Otherwise it is at
    least as large as ours, run by run and as a whole.
    """
    measured, printed = ours.sd**2 / ours.n, (sd or 0.0) ** 2 / max(runs, 1)
    is_believed = sd is not None and runs >= MIN_SEEDS
    if is_believed and sd:
        is_believed = float(special.fdtrc(ours.n - 1, runs - 1, (ours.sd / sd) ** 2)) > DOUBT
    elif is_believed:
        is_believed = not ours.sd
    if is_believed:
        total = measured + printed
        welch = total**2 / (measured**2 / (ours.n - 1) + printed**2 / (runs - 1)) if total else 1.0
        return math.sqrt(total), min(welch, ours.n - 1.0)
    borrowed = max(printed, ours.sd**2 / max(runs, 1), measured)
    return math.sqrt(measured + borrowed), ours.n - 1.0


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; `interval` is None if some setting has a single seed."""

    value: float
    interval: tuple[float, float] | None

    @classmethod
    def of(cls, value: float, draws: np.ndarray | None) -> Estimate:
        """The value with the middle 95 % of its resamples `draws`, if there are any."""
        if draws is None:
            return cls(value, None)
        low, high = np.quantile(draws, [ALPHA / 2, 1 - ALPHA / 2])
        return cls(value, (float(low), float(high)))


@dataclass(frozen=True)
class Scores:
    """Several strategies' runs: `values` has a row for each strategy and a column for each pair of
    setting and seed that all of them have; `positions` are the columns' settings, by index."""

    strategies: tuple[str, ...]
    settings: tuple[str, ...]
    values: np.ndarray
    positions: np.ndarray
    better: str = "high"

    @classmethod
    def of(cls, table: DataFrame, better: str = "high") -> Scores:
        """Arrange the scores of a table with the columns strategy, setting, seed and value;
        strategies and settings keep the order of their first rows."""
        if table.empty:  # no run has ended
            return cls((), (), np.empty((0, 0)), np.empty(0, int), better)
        strategies, settings = table["strategy"].unique(), list(table["setting"].unique())
        runs = table.pivot(index=["setting", "seed"], columns="strategy", values="value")
        runs = runs[list(strategies)].dropna()  # pivot raises for duplicates
        runs = runs.reindex(settings, level="setting")
        positions, shared = pd.factorize(runs.index.get_level_values("setting"))
        values = runs.to_numpy(dtype=float).T.round(DIGITS)
        return cls(tuple(strategies), tuple(shared), values, positions, better)

    @property
    def seeds(self) -> np.ndarray:
        """The number of seeds of each setting."""
        return np.bincount(self.positions, minlength=len(self.settings))

    def means(self) -> np.ndarray:
        """The mean over seeds: a row for each strategy and a column for each setting."""
        totals = [np.bincount(self.positions, row, len(self.settings)) for row in self.values]
        return np.array(totals).round(DIGITS) / self.seeds

    @cached_property
    def resampled(self) -> np.ndarray | None:
        """The weights of the runs in each bootstrap resample of the seeds, a row for each; None
        where a setting has a single seed, which tells nothing of other seeds.

        Of n seeds a resample draws n - 1: with n it would understate the variance by a factor of (n
        - 1) / n, which is a third at three seeds.
        """
        if not len(self.settings) or self.seeds.min() < 2:
            return None
        rng = np.random.default_rng(0)
        blocks = [
            rng.multinomial(n - 1, np.full(n, 1 / n), RESAMPLES) / (n - 1) for n in self.seeds
        ]
        return np.hstack(blocks) / len(self.settings)

    def estimate(self, statistic: Callable[[np.ndarray], np.ndarray]) -> Estimate:
        """The estimate by a statistic of rows of weights of the runs; settings count alike."""
        weights = 1 / (len(self.settings) * self.seeds[self.positions])
        draws = None if self.resampled is None else statistic(self.resampled)
        return Estimate.of(float(statistic(weights[None])[0]), draws)


def check_better(metric: str, consequence: str = "choose another") -> None:
    """Raise UserError for a metric of which neither high nor low values are better."""
    if not METRICS[metric].better:
        raise UserError(f"of {metric} neither high nor low is better; {consequence}")


def values_left_out(without: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """The values of labels that a figure or table is to be `without`, as texts."""
    return {
        label: list(map(label_text, values if isinstance(values, list) else [values]))
        for label, values in (without or {}).items()
    }


def check_settings(
    label: str,
    left_out: Mapping[str, Sequence[str]],
    axes: Iterable[str],
    cells: Iterable[Mapping[str, Any]],
) -> None:
    """Raise UserError if no setting of these cells has all compared values of the label; cells with
    a value that is `left_out` do not count. No cells pass."""
    apart = [axis for axis in axes if axis not in (label, "seed")]
    settings: defaultdict[tuple[str, ...], set[str]] = defaultdict(set)
    for cell in cells:
        if any(label_text(cell.get(axis)) in values for axis, values in left_out.items()):
            continue
        setting = tuple(label_text(cell.get(axis)) for axis in apart)
        settings[setting].add(label_text(cell.get(label)))
    values = set().union(*settings.values())
    if settings and not any(values <= planned for planned in settings.values()):
        lacks = "but no setting of its experiment has all of them"
        hint = f"say in without which values of {label} to leave out"
        raise UserError(f" compares {listed(sorted(values))}, {lacks}; {hint}")


def runs_by_setting(
    metrics: DataFrame, metric: str, at: int | str, excluded: Sequence[str]
) -> DataFrame:
    """The runs that have ended with a value, one row each, with the columns value, `setting` (the
    values of all labels that vary but `excluded` ones and the seed) and `apart` (their names)."""
    cells = value_per_cell(metrics, metric, at)
    if PANEL not in excluded:  # a run that is shown in several panels counts once
        cells = cells[~cells["digest"].str.contains(" ")]
    labels = [
        label
        for label in label_columns(metrics)
        if label not in (*excluded, "seed", *FREE) and cells[label].nunique() > 1
    ]
    cells = cells.assign(
        setting=cells[labels].agg(", ".join, axis=1) if labels else "",
        apart=listed(list(map(word, labels))) if labels else "",
    )
    return cells[cells["status"].isin(["done", "diverged"])].dropna(subset="value")


def rates_ahead_of(baseline: str, scores: Scores) -> dict[str, Estimate]:
    """The share of seeds in which each other strategy is ahead of a baseline, a tie half, averaged
    over settings; empty without the baseline."""
    if baseline not in scores.strategies:
        return {}
    sign = 1 if scores.better == "high" else -1
    ahead = np.sign(sign * (scores.values - scores.values[scores.strategies.index(baseline)]))
    return {
        strategy: scores.estimate(partial(np.dot, b=(row + 1) / 2))
        for strategy, row in zip(scores.strategies, ahead, strict=True)
        if strategy != baseline
    }


@dataclass(frozen=True, kw_only=True)
class Standing:
    """A strategy among all others: its `rank` by the mean rank over settings; its mean over
    settings; how often it is `ahead` of FedAvg, and its mean `difference` from it. It `leads` if
    Nemenyi's test does not tell it apart from the first; too few to test have no leader."""

    strategy: str
    rank: Estimate
    mean_rank: float
    score: float
    ahead: Estimate | None
    leads: bool
    difference: Estimate | None = None


@dataclass(frozen=True, kw_only=True)
class Standings:
    """The standings of all strategies, the best first, over `settings` that differ in `apart`, by
    so many `runs` of each; `left_out` are runs of seeds that not all strategies have. `p_value` is
    Friedman's; None if there are too few to test."""

    entries: list[Standing]
    settings: int
    apart: str
    runs: int
    left_out: int
    p_value: float | None

    @property
    def no_ranking(self) -> str:
        """A sentence if the order of the strategies is no ranking; else empty."""
        if self.p_value is None or self.p_value <= ALPHA:
            return ""
        why = "over these settings Friedman's test finds no difference between the strategies"
        return f"No ranking: {why} (p = {self.p_value:.3f})."


def standings_of(scores: Scores, runs: DataFrame) -> Standings:
    """The standings of all strategies by their scores, which are those of these runs."""
    entries = []
    if scores.settings:
        mean_ranks = _mean_ranks(scores.means(), scores)
        draws = None
        if scores.resampled is not None:
            masks = [scores.positions == setting for setting in range(len(scores.settings))]
            blocks = [scores.resampled[:, mask] @ scores.values[:, mask].T for mask in masks]
            draws = _positions(_mean_ranks(np.stack(blocks, axis=-1), scores))
        means, rates = scores.means(), rates_ahead_of(BASELINE, scores)
        differences = _differences(runs)
        positions, leading = _positions(mean_ranks), leaders(scores)
        entries = [
            Standing(
                strategy=name,
                rank=Estimate.of(float(positions[row]), None if draws is None else draws[:, row]),
                mean_rank=float(mean_ranks[row]),
                score=float(means[row].mean()),
                ahead=rates.get(name),
                leads=name in leading,
                difference=differences.get(name),
            )
            for row, name in enumerate(scores.strategies)
        ]
    return Standings(
        entries=sorted(entries, key=lambda entry: entry.rank.value),
        settings=len(scores.settings),
        apart=str(runs["apart"].iloc[0]) if len(runs) else "",
        runs=scores.values.shape[1],
        left_out=len(runs) - scores.values.size,
        p_value=friedman_p(scores),
    )


def friedman_p(scores: Scores) -> float | None:
    """Friedman's p-value; None if there are too few strategies or settings for the test."""
    means = scores.means().round(DIGITS)
    if len(means) < MIN_STRATEGIES or len(scores.settings) < MIN_SETTINGS:
        return None
    return 1.0 if (means == means[0]).all() else float(stats.friedmanchisquare(*means).pvalue)


def leaders(scores: Scores) -> set[str]:
    """The strategies that Nemenyi's test does not tell apart from the first, which are all if
    Friedman's finds no difference; none if there are too few for a test."""
    p_value = friedman_p(scores)
    if p_value is None:
        return set()
    behind = _mean_ranks(scores.means(), scores)
    behind -= behind.min()
    limit, strategies, settings = math.inf, len(behind), len(scores.settings)
    if p_value <= ALPHA:  # the smallest difference of two mean ranks that is significant
        quantile = float(stats.studentized_range.ppf(1 - ALPHA, strategies, np.inf)) / math.sqrt(2)
        limit = quantile * math.sqrt(strategies * (strategies + 1) / (6 * settings))
    return {name for name, gap in zip(scores.strategies, behind, strict=True) if gap < limit}


def shared_runs(runs: DataFrame, label: str) -> DataFrame:
    """The values of runs: a column for each value of the label, a row for each seed and setting
    that all of them have."""
    return runs.pivot(index=["seed", "setting"], columns=label, values="value").dropna()


def means_by_seed(runs: DataFrame, label: str) -> DataFrame:
    """The mean of each value of the label over the settings that all values have: a column for each
    value, a row for each seed that all have in all of these settings."""
    shared = shared_runs(runs, label)
    settings = shared.index.unique("setting").size
    complete = shared.groupby("seed").filter(lambda group: len(group) == settings)
    return complete.groupby("seed").mean()


def _differences(runs: DataFrame) -> dict[str, Estimate]:
    """The mean difference of each other strategy from FedAvg over seeds."""
    means = means_by_seed(runs, "strategy")
    if BASELINE not in means or means.empty:
        return {}
    estimates = {}
    for name in means.columns.drop(BASELINE):
        sample = Sample.of((means[name] - means[BASELINE]).to_numpy())
        estimates[name] = Estimate(sample.mean, sample.interval() if sample.n > 1 else None)
    return estimates


def _mean_ranks(means: np.ndarray, scores: Scores) -> np.ndarray:
    """The rank of each strategy by its means, averaged over settings, the last axis."""
    sign = -1 if scores.better == "high" else 1
    return stats.rankdata(sign * means.round(DIGITS), axis=-2).mean(axis=-1)


def _positions(mean_ranks: np.ndarray) -> np.ndarray:
    """The position of each strategy, the last axis, from 1; equal mean ranks share the better."""
    return stats.rankdata(mean_ranks.round(DIGITS), "min", axis=-1)
