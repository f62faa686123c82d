"""What config/datasets.yaml says of a data set's samples, beside its files: part of what a result depends on."""

from typing import Any

USUAL: dict[str, Any] = {
    **dict.fromkeys(
        ("shape", "classes", "groups", "train", "test", "scale", "mean", "std", "standardized")
    ),
    "kind": "images",
    "generated": False,
}
"""The facts, and the values of those that need not be given."""


def given(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts that differ from the usual."""
    return {key: facts[key] for key, usual in USUAL.items() if facts.get(key, usual) != usual}
