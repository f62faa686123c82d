"""Read the data sets and strategies: the built-in ones and the user's own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cohort.core import user_files
from cohort.core.errors import UserError, suggest
from cohort.core.shipped import CONFIG, shipped
from cohort.data.parsers import PARSERS, parser_name
from cohort.plan.located import errors_at
from cohort.plan.schema_validation import Validator
from cohort.plan.yaml_files import read_yaml

DATASET = r"[a-z][a-z0-9-]{0,60}"  # the form of the name of a data set, which is a part of paths


def read_entries(name: str, validator: Validator) -> dict[str, Any]:
    """Read the entries of config/{name}.yaml, then those of the user's file of that name, if any.

    Raise a UserError where one of the user's has the name of a built-in one.
    """
    file = shipped(CONFIG / f"{name}.yaml")
    built_in = _read_valid(file, name, validator)
    if name == "datasets":
        _check_sources(file, built_in)
    user_file = user_files.folder() / file.name
    if not user_file.exists():
        return built_in
    added = _read_valid(user_file, name, validator) if read_yaml(user_file) else {}
    with errors_at(user_file):
        for taken in built_in.keys() & added.keys():
            raise UserError(f"{taken} is in {file} already; give yours another name")
    return built_in | added


def dataset_names() -> list[str]:
    """The names of all data sets, built-in ones and the user's, whether or not they are valid."""
    files = (shipped(CONFIG / "datasets.yaml"), user_files.folder() / "datasets.yaml")
    contents = (read_yaml(file) for file in files if file.exists())
    return [str(name) for content in contents if isinstance(content, dict) for name in content]


def _read_valid(file: Path, name: str, validator: Validator) -> dict[str, Any]:
    """Read a file of entries and validate it by the schema `name`, and data sets further."""
    content: dict[str, Any] = read_yaml(file)
    with errors_at(file):
        if name == "datasets":
            _check_datasets(content)
        validator.check(content, name)
    return content


def _check_sources(file: Path, content: Mapping[str, Any]) -> None:
    """Raise a UserError for a built-in data set that names a file of this machine."""
    for name, entry in content.items():
        for raw, declared in entry["files"].items():
            if declared.get("source", "").startswith("file:"):
                raise UserError(
                    f"{file}: {name}.files.{raw}.source is '{declared['source']}', but only data "
                    f"sets in {user_files.folder() / file.name} may name files of this machine"
                )


def _check_datasets(content: Any) -> None:
    """Raise a UserError for the name of a data set that fits no path, or that nothing can read."""
    for name, entry in content.items() if isinstance(content, Mapping) else ():
        if not re.fullmatch(DATASET, name):
            raise UserError(f"'{name}' must be a name of small letters, digits and -")
        parser = parser_name(name, entry) if isinstance(entry, Mapping) else name
        if parser not in PARSERS:
            raise UserError(
                f"{name}.parser is '{parser}', which is not known{suggest(parser, PARSERS)}"
            )
