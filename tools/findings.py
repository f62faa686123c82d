"""`python -m tools.findings [STUDY ...]`: hold the findings of studies against their released runs.

Prints what the runs show for each value that a finding rests on, and exits with 1 if they show
another value, or if a sentence has a number that none of its values gives.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from cohort.core.metric import Metric
from cohort.plan import load
from cohort.plan.matrix import Values
from cohort.results.claims.judged import JudgedClaim
from cohort.results.comparison import Comparison
from cohort.results.names import METRICS
from cohort.results.statistics import Standing
from cohort.results.tables.tabulate import SHARE, rank_interval, rounded
from tools.study import compared_table, judged, released

NUMBER = r"\d+(?:,\d{3})*(?:\.\d+)?"
NUMERAL = rf"(?<![\w.])(?<![A-Za-z][-(]){NUMBER}"
"""A number in a sentence; what follows a letter, as in `Dir(0.1)` or `CIFAR-10`, is a name."""

Part = tuple[set[str], dict[str, str]]
"""A part of a table or claim: its label values and measures, and its quantities as shown."""


def released_values(study: str, findings: Iterable[Values]) -> dict[str, str]:
    """What a study's released runs show for each value that these findings rest on."""
    names = {text: text.split(", ")[0] for finding in findings for text in finding["rests_on"]}
    with released(study) as plan:
        parts = {claim.claim: list(_claim_parts(claim)) for claim in judged(plan, study)}
        for name in set(names.values()) - parts.keys():
            parts[name] = list(_table_parts(compared_table(plan, study, name)))
    return {reference: _value_at(reference, parts[name]) for reference, name in names.items()}


def problems(finding: Values, results: Mapping[str, str]) -> Iterator[str]:
    """Yield what a finding says and the results of its released runs do not."""
    numbers: list[float] = []
    for reference, value in finding["rests_on"].items():
        stated, actual = _numbers(str(value)), _numbers(results[reference])
        numbers += [*stated, *_numbers(reference)]
        if actual[: len(stated)] != stated or (not stated and results[reference] != value):
            yield f"{reference} is {results[reference]}, not {value}"
    for numeral in re.findall(NUMERAL, finding["text"]):
        half = 0.5 / 10 ** len(numeral.partition(".")[2])  # of the last digit
        (number,) = _numbers(numeral)
        if all(abs(abs(value) - number) > half + 1e-9 for value in numbers):
            yield f"no value gives the {numeral} of: {finding['text']}"


def headlined(text: str) -> str:
    """A finding in Markdown, with its first sentence in bold."""
    return re.sub(r"^.*?\.(?= |$)", r"**\g<0>**", text)


def _numbers(text: str) -> list[float]:
    return [float(number.replace(",", "")) for number in re.findall(rf"[-+]?{NUMBER}", text)]


def _value_at(reference: str, parts: Iterable[Part]) -> str:
    """The value, as shown, that a reference names; it must be in one part only."""
    _, *values, quantity = reference.split(", ")
    matches = [part for names, part in parts if names >= set(values) and quantity in part]
    if len(matches) != 1:
        raise ValueError(f"{reference} names {len(matches)} values: {matches[:5]}")
    return matches[0][quantity]


def rank_text(standing: Standing) -> str:
    """A rank with its interval as text: `3 [1, 6]`."""
    return f"{standing.rank.value:.0f} {rank_interval(standing)}".rstrip()


def _table_parts(comparison: Comparison) -> Iterator[Part]:
    is_board = comparison.standings is not None  # its means are over settings, not over seeds alone
    for standing in comparison.standings.entries if comparison.standings else ():
        quantities = {"rank": rank_text(standing), "mean_rank": f"{standing.mean_rank:.1f}"}
        quantities["leads"] = "yes" if standing.leads else "no"
        score = METRICS[comparison.results[0].metric]
        for name, estimate, metric in (
            ("ahead_of_fedavg", standing.ahead, SHARE),
            ("minus_fedavg", standing.difference, replace(score, signed=True)),
        ):
            if estimate:
                quantities[name] = _text(metric, estimate.value, estimate.interval)
        yield {standing.strategy}, quantities
    for result in comparison.results:
        metric, against = METRICS[result.metric], result.against
        quantities = {
            "mean": _text(metric, result.sample.mean, None if is_board else result.interval),
            "sd": _text(metric, result.sample.sd),
            "verdict": result.verdict,
        }
        if against:
            quantities["minus_fedavg"] = _text(metric, against.mean, against.interval())
        if result.paper:
            quantities["paper"] = _text(metric, result.paper.value)
            quantities["minus_paper"] = _text(metric, result.difference, result.difference_interval)
        yield {*result.labels.values(), result.metric, result.at}, quantities


def _text(metric: Metric, value: float, interval: tuple[float, float] | None = None) -> str:
    ends = ", ".join(rounded(end, metric) for end in interval or ())
    return f"{rounded(value, metric)} [{ends}]" if ends else rounded(value, metric)


def _claim_parts(claim: JudgedClaim) -> Iterator[Part]:
    yield set(), {"verdict": claim.measured}
    for comparison in claim.comparisons:
        evidence = comparison["sides"]["ours"]
        names = {value for point in comparison["points"] for value in point["labels"].values()}
        quantities = {"shown": evidence["shown"]}
        if evidence["difference"]:
            mean, seeds = (evidence["difference"][name] for name in ("mean", "seeds"))
            quantities["difference"] = f"{mean}, {seeds}"  # its bounds are no interval
        yield names, quantities


def main(studies: Iterable[str]) -> None:
    """Print what the released runs of these studies show, and exit with 1 if findings differ."""
    mismatches = []
    for study in studies:
        findings = load({"studies": study}).study(study).findings
        results = released_values(study, findings)
        for reference, value in results.items():
            print(f"{study}: {reference}: {value}")
        mismatches += [problem for finding in findings for problem in problems(finding, results)]
    sys.exit("\n".join(mismatches) or 0)


if __name__ == "__main__":
    main(sys.argv[1:])
