"""Names of partitions are parsed, formatted and refused."""

import pytest

from cohort.core.errors import UserError
from cohort.partition import parse_partition, schemes
from cohort.partition.schemes import Dirichlet, Iid, Overlap, PlainDirichlet, Sampled

MEANINGS = {
    "iid": Iid(),
    "classes-2": schemes.Classes(k=2),
    "dir-0.1": Dirichlet(alpha=0.1, minimum=10),
    "dir-0.00001": Dirichlet(alpha=1e-5),
    "dir-0.12345678": Dirichlet(alpha=0.12345678),
    "sampled-1-1000000": Sampled(low=1, high=1_000_000),
    "dir-0.1-minimum1": Dirichlet(alpha=0.1, minimum=1),
    "dirplain-0.5": PlainDirichlet(alpha=0.5, minimum=1),
    "dirplain-0.1-minimum0": PlainDirichlet(alpha=0.1, minimum=0),
    "quantity-0.5": schemes.Quantity(alpha=0.5, minimum=10),
    "covering-10": schemes.Covering(k=10),
    "roles-50": schemes.Roles(k=50),
    "domains-1": schemes.Domains(d=1),
    "onedomain-0": schemes.IsolatedDomain(domain=0),
    "dirdomains-0.5": schemes.DirichletDomains(alpha=0.5, minimum=10),
    "dirclients-0.1": schemes.DirichletClients(alpha=0.1),
    "iid-overlap0.2x2-replace": Overlap(base=Iid(), ratios=(0.2, 0.2), replace=True),
    "dirplain-0.1-minimum0-overlap0.1+0.3-replace": Overlap(
        base=PlainDirichlet(alpha=0.1, minimum=0), ratios=(0.1, 0.3), replace=True
    ),
    "dir-0.1-minimum1-overlap0.2x1": Overlap(base=Dirichlet(alpha=0.1, minimum=1), ratios=(0.2,)),
    "iid-overlap0x2": Overlap(base=Iid(), ratios=(0.0, 0.0)),
    "iid-overlap0.1+0.3": Overlap(base=Iid(), ratios=(0.1, 0.3)),
    "sampled-1-5-overlap0.1+0.2+0.2": Overlap(base=Sampled(low=1, high=5), ratios=(0.1, 0.2, 0.2)),
}


OVERLAP = "SCHEME-overlapRATIOxCLIENTS[-replace] or SCHEME-overlapRATIO+RATIO[-replace]"
MINIMUM = "-ALPHA[-minimumN]"
FORMS = ["classes-K", "covering-K", *(f"dir{kind}{MINIMUM}" for kind in ("", "domains", "plain"))]
FORMS[3:3] = ["dirclients-ALPHA"]
FORMS += ["domains-D", "iid", "onedomain-DOMAIN", OVERLAP, f"quantity{MINIMUM}", "roles-K"]
FORMS += ["sampled-LOW-HIGH"]


@pytest.mark.parametrize("text", MEANINGS)
def test_name_is_parsed_and_formatted(text: str):
    scheme = parse_partition(text)
    assert type(scheme) is type(MEANINGS[text])
    assert scheme == MEANINGS[text]
    assert str(scheme) == text


@pytest.mark.parametrize(
    "text", ["", "round-robin", "Iid", "iid ", "-dir", "dir_0.1", "overlap0.2x2"]
)
def test_unknown_scheme_lists_all_forms(text: str):
    with pytest.raises(UserError) as caught:
        parse_partition(text)
    assert f"partition '{text}'" in str(caught.value)
    assert str(caught.value).endswith(f"(allowed: {', '.join(FORMS)})")


WRONG = {
    "classes": "of the form classes-K, k being a whole number",
    "classes-0": "classes-K: k is 0, but must be at least 1",
    "classes-2.5": "classes-K, k being a whole number",
    "classes-02": "is written 'classes-2'",
    "classes-2-3": "of the form classes-K",
    "iid-3": "of the form iid",
    "dir-0": "dir-ALPHA[-minimumN]: alpha is 0, but must be above 0",
    "dir-x": "dir-ALPHA[-minimumN], alpha being a number",
    "dir-nan": "dir-ALPHA[-minimumN]",
    "dir-0.1-minimum0": "dir-ALPHA[-minimumN]: minimum is 0, but must be at least 1",
    "dir-0.1-maximum5": "dir-ALPHA[-minimumN]",
    "dir-0.1-minimum1-minimum2": "of the form dir-ALPHA[-minimumN]",
    "dir-0.10": "is written 'dir-0.1'",  # a second spelling would be a second digest
    "dir-0.1-minimum10": "is written 'dir-0.1'",
    "sampled-5": "sampled-LOW-HIGH",
    "sampled-0-5": "sampled-LOW-HIGH",
    "overlap": OVERLAP,
    "iid-overlap": OVERLAP,
    "iid-overlap0.0x2": "is written 'iid-overlap0x2'",
    "iid-overlap1x2": OVERLAP,
    "iid-overlapnan+0.2": OVERLAP,
    "iid-overlap0.2x0": OVERLAP,
    "iid-overlap0.2x9999999999": OVERLAP,
    "iid-overlap0.2+": OVERLAP,
    "iid-overlap0.2x2-overlap0.2x2": OVERLAP,
    "iid-overlap0.2x2-replaced": OVERLAP,
    "iid-replace": "of the form iid",
    "iid-overlap0.3+0.1-replace": "is written 'iid-overlap0.1+0.3-replace'",
    "iid-overlap0.2": "is written 'iid-overlap0.2x1'",
    "iid-overlap0.1+0.3x2": "is written 'iid-overlap0.1+0.1+0.3+0.3'",
    "iid-overlap0.2+0.2": "is written 'iid-overlap0.2x2'",
}


@pytest.mark.parametrize("text", WRONG)
def test_errors_in_values_show_the_form(text: str):
    with pytest.raises(UserError) as caught:
        parse_partition(text)
    message = str(caught.value)
    assert "\n" not in message
    assert f"partition '{text}'" in message
    assert WRONG[text] in message
