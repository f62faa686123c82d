"""The HDF5 file of a record: written atomically, validated on every read. See docs/records.md."""

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cohort.core import FileAccessError, UserError, lazy
from cohort.core.hdf5 import SealedFile, new_hdf5
from cohort.core.metric import NAME
from cohort.core.paths import digest_in
from cohort.core.sealed_json import explain_unreadable
from cohort.records.history import History
from cohort.settings import DIGEST

jsonschema = lazy("jsonschema")  # slow to import, and needed only when a run ends

FORMAT = 1
TEXT = {"type": "string"}
SHA256 = "^[0-9a-f]{64}$"
FILE = re.compile(rf"seed\d+-{DIGEST}\.h5")  # of a record; no other file is named so


def object_schema(*optional: str, **properties: Any) -> dict[str, Any]:
    """The schema of an object with these properties and no others."""
    required = [name for name in properties if name not in optional]
    form = {"type": "object", "properties": properties, "required": required}
    return form | {"additionalProperties": False}


PROVENANCE = object_schema(
    "my",
    versions={"type": "object", "additionalProperties": TEXT},
    commit=TEXT,
    my={"type": "object", "additionalProperties": TEXT},
    trainer=TEXT,
    devices={"type": "array", "items": TEXT, "minItems": 1},
    sessions={"type": "array", "items": {"type": "object"}, "minItems": 1},
    peak_memory_mb={"type": "number"},
)
RELEASES = {"type": "array", "items": {"$ref": "#/$defs/release"}, "minItems": 1}
RELEASE = {"type": "object", "properties": {"release": TEXT, "restored": RELEASES}}
RELEASE |= {"required": ["release"]}
HEADER = object_schema(
    "restored",
    format={"const": FORMAT},
    digest={"type": "string", "pattern": f"^{DIGEST}$"},
    status={"enum": ["done", "diverged"]},
    settings={"type": "object"},
    science={"type": "object", "additionalProperties": {"type": "integer"}},
    weights_sha256={"type": "string", "pattern": SHA256},
    restored=RELEASES,
    provenance=PROVENANCE,
) | {"$defs": {"release": RELEASE}}
CLIENT_ARRAYS = ("size", "selected", "loss", "accuracy")
ARRAY_GROUPS = ("clients", "classes")


@dataclass(frozen=True)
class Record:
    """A record in memory: a header as HEADER describes, the history, arrays with one row per client
    (`label_counts` and those of CLIENT_ARRAYS), and arrays with one value per class."""

    header: dict[str, Any]
    history: History
    clients: dict[str, np.ndarray]
    classes: dict[str, np.ndarray] = field(default_factory=dict)


def write(path: str | Path, record: Record) -> None:
    """Write a record to a file, completely or not at all."""
    check(record)
    with new_hdf5(path) as file:
        file.attrs["header"] = json.dumps(record.header, sort_keys=True)
        for name, array in record.history.arrays().items():
            file[name] = array
        for group in ARRAY_GROUPS:
            for name, array in getattr(record, group).items():
                file[f"{group}/{name}"] = array


def read(path: str | Path) -> Record:
    """Read and validate a record; raise UserError if it is missing, damaged or incomplete, and
    FileAccessError if the system does not let it be read."""
    with explain_unreadable(path, "a record"):
        with SealedFile(path) as file:
            header = json.loads(file.attrs["header"])
            arrays = file.arrays()
        plain: dict[str, dict[str, np.ndarray]] = {group: {} for group in ARRAY_GROUPS}
        for path_in_file, array in arrays.items():
            group, _, name = path_in_file.partition("/")
            if group in plain:
                plain[group][name] = array
        record = Record(header, History.from_arrays(arrays), **plain)
        check(record)
        if FILE.fullmatch(Path(path).name) and header["digest"] != digest_in(path):
            raise ValueError(f"it is that of {header['digest']}, under the name of another cell")
        return record


def is_valid(path: str | Path, digest: str = "") -> bool:
    """Whether the file is a valid record, and that of the cell with this digest if one is given."""
    try:
        record = read(path)
    except FileAccessError:  # it may well be valid
        raise
    except UserError:
        return False
    return digest in ("", record.header["digest"])


def check(record: Record) -> None:
    """Raise an error unless a record is valid."""
    jsonschema.Draft202012Validator(HEADER).validate(record.header)
    history, settings = record.history, record.header["settings"]
    for names in (history.metrics, history.cost, history.traffic, record.clients, record.classes):
        for name in names:
            if not NAME.fullmatch(name):
                raise ValueError(f"{name!r} is not the name of a metric")
    clients, rounds = settings["clients"], settings["rounds"]
    for name, array in record.classes.items():
        if array.shape != (record.clients["label_counts"].shape[1],):
            raise ValueError(f"classes/{name} does not have one value for each class")
    for name in CLIENT_ARRAYS:
        if record.clients[name].shape != (clients,):
            wanted = f"one value for each of {clients} clients"
            raise ValueError(f"clients/{name} does not have {wanted}")
    if record.header["status"] == "done" and len(history.cohorts) != rounds:
        raise ValueError(f"{len(history.cohorts)} cohorts for {rounds} rounds")
    for name, pairs in [*history.metrics.items(), *history.cost.items()]:
        recorded = [round for round, _ in pairs]
        if recorded != sorted({0, *recorded})[1:] or max(recorded, default=0) > rounds:
            raise ValueError(f"the rounds of {name} do not ascend within 1 to {rounds}")
