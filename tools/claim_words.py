"""Say in words what a claim compares."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cohort.results.at import rounds_of
from cohort.results.claims.claim import FIRST, Claim, short_name
from cohort.results.claims.kinds.differences import AT, Average, Compare, Gain, WiderGap
from cohort.results.claims.kinds.levels import Best, Order, Range, Slower
from cohort.results.claims.matrix import as_list
from cohort.results.names import METRICS, Names
from cohort.results.series import label_text

WORDS = {
    "last": "at the end",
    "last-10": "in the last ten rounds",
    "mean": "in the mean of all rounds",
    "max": "at its best",
    "min": "at its lowest",
}
NAMES_OF_PEOPLE = ("Gini",)
Labels = Mapping[str, Any]


def claim_in_words(claim: Claim, names: Names) -> str:
    """A phrase on what a claim compares: where, the metric, when, and what is asked of it.

    A kind without words of its own is described by its docstring.
    """
    describe = KINDS.get(type(claim), _by_docstring)
    words = f"{quantity_phrase(claim.metric, claim.at, claim.buckets)} {describe(claim, names)}"
    along = getattr(claim, "along", "")  # its values are named in what is asked
    given = {label: values for label, values in (claim.given or {}).items() if label != along}
    where = f"for {labels_phrase(given, names)}, " if given else ""
    return where + words.replace(" :", ":")


def quantity_phrase(metric: str, at: int | str, buckets: int | None = None) -> str:
    """A metric and the rounds at which it is taken, as text: `test accuracy in rounds 21 to 30`."""
    title, comma, detail = METRICS[metric].title.partition(", ")
    if not title.startswith(NAMES_OF_PEOPLE):
        title = title[0].lower() + title[1:]
    title += f" ({detail})" if comma else ""
    if str(at).startswith(FIRST):
        goal = float(str(at).removeprefix(FIRST)) * METRICS[metric].scale
        return f"the first round with a {title} of {goal:g} {METRICS[metric].unit}".rstrip()
    return f"{title} {rounds_phrase(at, buckets)}"


def rounds_phrase(at: int | str, buckets: int | None = None) -> str:
    """The rounds at which a value is taken, as text."""
    if str(at) in WORDS:
        return WORDS[str(at)]
    limits = rounds_of(at)
    if str(at).isdigit() or limits is None:
        return f"in round {at}"
    each = f"each {buckets} of " if buckets else ""
    return f"in {each}rounds {limits[0]} to {limits[1]}"


def amount(claim: Claim, value: float) -> str:
    """A difference with its unit, as text; percent differ by points."""
    unit = "round" if claim.counts_rounds() else METRICS[claim.metric].unit
    if unit in ("%", "points", "round"):
        unit = ("round" if unit == "round" else "point") + ("" if value == 1 else "s")
    return f"{value:g} {unit}".rstrip()


def labels_phrase(labels: Labels, names: Names) -> str:
    """Labels with their values as text: `CIFAR-10, CINIC-10; FedAvg`."""
    return "; ".join(
        rounds_phrase(values).removeprefix("in ")
        if label == AT
        else values_of(label, as_list(values), names)
        for label, values in labels.items()
    )


def values_of(label: str, values: Sequence[Any], names: Names) -> str:
    """The names of some values of a label as text, each once."""
    return ", ".join(dict.fromkeys(short_name(label, label_text(value), names) for value in values))


def _by_docstring(claim: Claim, names: Names) -> str:
    return ": " + " ".join((claim.__doc__ or "").split("\n\n")[0].split()).rstrip(".")


def _order(claim: Order, names: Names) -> str:
    later = {"rises": "is later from each to the next", "falls": "is earlier from each to the next"}
    way = later[claim.way] if claim.counts_rounds() else claim.way
    return f"{way} in this order: {values_of(claim.along, claim.values, names)}"


def _range(claim: Range, names: Names) -> str:
    asked = []
    bounds = {"above": claim.above, "below": claim.below}
    bounded = [f"{way} {bound:g}" for way, bound in bounds.items() if bound is not None]
    if bounded:
        asked.append(f"is {' and '.join(bounded)}" + (" in every run" if claim.every else ""))
    if claim.within is not None:
        asked.append(f"differs by at most {amount(claim, claim.within)} between any two values")
    if claim.beyond is not None:
        asked.append(f"differs by more than {amount(claim, claim.beyond)} between some two values")
    if claim.between:
        asked.append(f"is {claim.between[0]:g} to {claim.between[1]:g} for every value")
    if not claim.along:
        return " and ".join(asked)
    chosen = (claim.given or {}).get(claim.along)
    label = names.title(claim.along).lower()
    of = f"{label} ({values_of(claim.along, as_list(chosen), names)})" if chosen else label
    return f"{' and '.join(asked)} of {of}"


def _best(claim: Best, names: Names) -> str:
    better = "lower" if claim.better() == "low" else "higher"
    better = "earlier" if claim.counts_rounds() else better
    among = values_of(claim.along, claim.among, names)
    others = [
        value
        for value in as_list((claim.given or {}).get(claim.along, []))
        if label_text(value) not in map(label_text, claim.among)
    ]
    rest = values_of(claim.along, others, names) or "all others"
    rest = f"each of {rest}" if len(others) > 1 else rest
    one = "one of " if len(claim.among) > 1 else ""
    return f"is {better} for {one}{among} than for {rest}"


def _compare(claim: Compare, names: Names) -> str:
    return " and ".join(
        f"is {_beyond(claim, way)} {_other(claim, other, names)}"
        for way in ("above", "below")
        for other in getattr(claim, way) or []
    )


def _other(claim: Compare, other: Labels, names: Names) -> str:
    """Describe the other side of a comparison, as far as it differs from the claim's own."""
    at, metric = other.get("at", claim.at), other.get("metric", claim.metric)
    where = labels_phrase(other.get("given", {}), names)
    words = ["that", where and f"of {where}"]
    if metric != claim.metric:
        words = [quantity_phrase(metric, at), where and f"for {where}"]
    elif at != claim.at:
        words.append(rounds_phrase(at))
    if other.get("experiment", claim.experiment) != claim.experiment:
        words.append(f"in experiment `{other['experiment']}`")
    return " ".join(filter(None, words))


def _beyond(claim: Average | Compare | Gain, way: str) -> str:
    """`above`, `more than 5 points above`, or `at most 2 points below`."""
    if claim.margin < 0:
        other = {"above": "below", "below": "above"}[way]
        return f"at most {amount(claim, -claim.margin)} {other}"
    if claim.counts_rounds() and not claim.margin:
        return {"above": "after", "below": "before"}[way]
    return f"more than {amount(claim, claim.margin)} {way}" if claim.margin else way


def _average(claim: Average, names: Names) -> str:
    return f"{_pairs(claim, names)}, on average over settings"


def _pairs(claim: Average | Gain, names: Names) -> str:
    groups: dict[str, list[Any]] = {}
    for first, second in claim.pairs:
        groups.setdefault(label_text(first), []).append(second)
    parts = [
        f"{short_name(claim.along, first, names)} is {_beyond(claim, 'above')} "
        + values_of(claim.along, seconds, names)
        for first, seconds in groups.items()
    ]
    return f": {'; '.join(parts)}"


def _gap(claim: WiderGap, names: Names) -> str:
    first, *others = claim.between
    each = "each of " if len(others) > 1 else ""
    lead = (
        f": {values_of(claim.along, [first], names)} minus "
        f"{each}{values_of(claim.along, others, names)}"
    )
    if claim.grows is None:
        than, larger = (labels_phrase(labels or {}, names) for labels in (claim.than, claim.larger))
        return f"{lead} is larger for {larger} than for {than}"
    chains = [
        " to ".join(f"({labels_phrase(labels, names)})" for labels in chain)
        for chain in claim.chains()
    ]
    return f"{lead} grows from {', and from '.join(chains)}"


def _slower(claim: Slower, names: Names) -> str:
    leader = values_of(claim.along, [claim.leader], names)
    late = f"{claim.times:g} times as late" if claim.times != 1 else "later"
    others = values_of(claim.along, claim.others, names)
    each = "each of " if len(claim.others) > 1 else ""
    return f": that of {leader} is reached {late} by {each}{others}, or never"


KINDS: dict[type[Claim], Callable[[Any, Names], str]] = {
    Order: _order,
    Best: _best,
    Compare: _compare,
    Gain: _pairs,
    Average: _average,
    WiderGap: _gap,
    Slower: _slower,
    Range: _range,
}
