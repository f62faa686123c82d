"""The facts about a data set's samples in config/datasets.yaml, which are part of the digest of its
prepared file."""

from typing import Any

DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(
        ("shape", "classes", "groups", "train", "test", "validation", "scale", "mean", "std")
    ),
    "standardized": None,
    "kind": "images",
    "generated": False,
    "parser": None,
}
"""All facts, with the defaults of the optional ones."""


def non_default(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts that differ from their defaults."""
    return {key: facts[key] for key, usual in DEFAULTS.items() if facts.get(key, usual) != usual}
