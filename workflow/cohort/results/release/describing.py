"""A release as a research object: an RO-Crate of its runs (Workflow Run Crate 0.5), an action each
with its inputs, outputs, software and hardware, and a Croissant description of its tables. What is
the same of all releases is in descriptions.json."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import fields
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
from pyarrow import parquet

import cohort
from cohort.core import paths
from cohort.core.files import write_text
from cohort.core.shipped import SNAKEFILE
from cohort.core.text import counted
from cohort.records.record import Record
from cohort.results.release import folder as releases
from cohort.settings import DEFAULTS, Settings

Entity = dict[str, Any]
"""A node of a JSON-LD graph."""

CRATE, CROISSANT, WORKFLOW = "ro-crate-metadata.json", "croissant.json", "Snakefile"
FORMATS = {".parquet": "application/x-parquet", ".json": "application/json", "": "text/plain"}
SPDX = "https://spdx.org/licenses/"
DESCRIPTIONS = json.loads(Path(__file__).with_name("descriptions.json").read_text(encoding="utf-8"))
"""What all releases have in common, what inputs and columns mean where names do not say it, and the
columns that, with `digest`, tell a table's rows apart."""
HARDWARE = "https://www.wikidata.org/wiki/Q3966"
STATED = {"title": "name", "citation": "citation", "licence": "license"}
"""What config/datasets.yaml states of a data set, and schema.org's name for it."""
PARAMETERS = {field.name: field.metadata["schema"]["description"] for field in fields(Settings)}
PARAMETERS |= DESCRIPTIONS["parameters"]
"""What each input of a run means."""


def describe(folder: Path, runs: Iterable[Record], datasets: Mapping[str, Any]) -> None:
    """Describe a release of these runs, always by the same bytes: write its RO-Crate, its Croissant
    description, and a copy of the Snakefile. `datasets` is what config/datasets.yaml says."""
    actions, others, manifest = list[Entity](), dict[str, Entity](), releases.read_manifest(folder)
    for run in sorted(runs, key=lambda run: run.header["digest"]):
        action, *mentioned = _run(run)
        actions.append(action)
        others |= {entity["@id"]: entity for entity in mentioned}
    for entity in others.values():
        if entity["name"] == "dataset":
            info = datasets.get(entity["value"], {})
            stated = {name: info[key] for key, name in STATED.items() if key in info}
            entity |= {"@type": "CreativeWork"} | stated
    about = {
        "name": f"Cohort: runs of {manifest['name']}",
        "description": f"{counted(len(actions), 'run')} of federated learning with settings, "
        "learning curves, cohorts and provenance; docs/records.md of Cohort explains all columns.",
        "datePublished": max(action["endTime"] for action in actions)[:10],
        "license": SPDX + manifest["license"],
    }
    graph = _crate(about, manifest, [others[key] for key in sorted(others)], actions)
    # A line for each entity, and for each run that the folder mentions: a further run adds lines.
    lines = ",\n".join(map(json.dumps, graph)).replace(', {"@id": "#k', ',\n{"@id": "#k')
    context = json.dumps(DESCRIPTIONS["crate"]["@context"])
    crate = f'{{"@context": {context}, "@graph": [\n{lines}\n]}}\n'
    write_text(folder / WORKFLOW, Path(SNAKEFILE).read_text(encoding="utf-8"))
    write_text(folder / CROISSANT, json.dumps(_croissant(folder, manifest, about), indent=1) + "\n")
    write_text(folder / CRATE, crate)


def _crate(
    about: Entity, manifest: Entity, others: list[Entity], actions: list[Entity]
) -> list[Entity]:
    """The entities of the crate: those of all crates with what differs, its files, the parameters,
    then what the runs refer to, then the runs."""
    names = [*manifest["files"], releases.MANIFEST, CROISSANT]
    files = [_entity(name, "File", encodingFormat=FORMATS[Path(name).suffix]) for name in names]
    parameters, tables = list[Entity](), _refs(files[:-2])
    for name, text in PARAMETERS.items():
        entity = _entity(f"#{name}", "FormalParameter", additionalType="Text", description=text)
        if isinstance(DEFAULTS.get(name), str | int | float):
            entity["defaultValue"] = str(DEFAULTS[name])
        parameters.append(entity)
    mentioned: list[Entity] = [{"@id": "#workflow-run"}, {"@id": "#rows"}, *actions]
    license = _entity(about["license"], "CreativeWork")
    variable = {
        "./": about
        | {"license": {"@id": license["@id"]}, "hasPart": _refs([{"@id": WORKFLOW}, *files])}
        | {"mentions": _refs(mentioned)},  # at the end, since a further run adds lines
        WORKFLOW: {"version": cohort.__version__, "input": _refs(parameters)},
        "#workflow-run": {
            "description": f"{len(actions)} runs",
            "result": tables,
            "object": _refs(entity for entity in others if entity["@type"] == "CreativeWork"),
            "startTime": min(action["startTime"] for action in actions),
            "endTime": max(action["endTime"] for action in actions),
        },
        "#rows": {"hasPart": tables},
    }
    entities = [fixed | variable.get(fixed["@id"], {}) for fixed in DESCRIPTIONS["crate"]["@graph"]]
    return [*entities, license, *files, *parameters, *others, *actions]


def _run(run: Record) -> list[Entity]:
    """The action that is a run, and what it refers to: values of its inputs, software, hardware."""
    header, settings, provenance = run.header, run.header["settings"], run.header["provenance"]
    sessions, cost = provenance["sessions"], run.history.cost["seconds"]
    started, resumed = (datetime.fromisoformat(sessions[at]["started"]) for at in (0, -1))
    seconds = sum(value for round, value in cost if round > sessions[-1]["from_round"])
    inputs = [
        _value(name, settings[name]) | {"exampleOfWork": {"@id": f"#{name}"}}
        for name in PARAMETERS
        if name in settings and settings[name] != DEFAULTS.get(name)
    ]
    trainer = _value("trainer", provenance["trainer"])
    devices = [_value("device", name) | {"propertyID": HARDWARE} for name in provenance["devices"]]
    parts = (provenance["versions"] | provenance.get("my", {})).items()
    needed = [_software(f"{name}-{version}", name, version) for name, version in parts]
    content = hashlib.sha256(json.dumps([provenance["commit"], *parts]).encode()).hexdigest()
    version = f"{provenance['versions'].get('cohort', '')}+{provenance['commit']}"
    software = _software(f"cohort-{content[:12]}", "Cohort", version)
    software["softwareRequirements"] = _refs(needed)
    labels = [str(settings.get(key)) for key in paths.CELL_FOLDERS]
    action = _entity(f"#{header['digest']}", "CreateAction", identifier=header["digest"])
    action |= {
        "name": f"{' '.join(labels)}, seed {settings['seed']}",
        "description": f"{len(cost)} rounds, {header['status']}",
        **{"instrument": {"@id": software["@id"]}, "object": _refs([*inputs, trainer])},
        **{"result": {"@id": "#rows"}, "resourceUsage": _refs(devices)},
        "startTime": started.isoformat(),
        "endTime": (resumed + timedelta(seconds=round(seconds))).isoformat(),
    }
    return [action, *inputs, trainer, *devices, *needed, software]


def _value(name: str, value: Any) -> Entity:
    """The entity of one input value; its id combines the input's name and the value."""
    text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
    key = quote(text.translate({ord(mark): None for mark in ' "{}'}), safe=":,")
    return _entity(f"#{name}={key}", "PropertyValue", name=name, value=text)


def _software(key: str, name: str, version: str) -> Entity:
    return _entity(f"#{quote(key)}", "SoftwareApplication", name=name, softwareVersion=version)


def _entity(key: str, kind: str | list[str], /, **values: Any) -> Entity:
    return {"@id": key, "@type": kind, "name": key.removeprefix("#").removeprefix(SPDX)} | values


def _refs(entities: Iterable[Entity]) -> Any:
    """References to entities: a list, or a single one as it is."""
    refs = [{"@id": entity["@id"]} for entity in entities]
    return refs if len(refs) != 1 else refs[0]


def _croissant(folder: Path, manifest: Entity, about: Entity) -> Entity:
    """The Croissant description of a release's tables."""
    files = [
        _entity(name, "cr:FileObject", contentUrl=name, encodingFormat=FORMATS[".parquet"])
        | {"sha256": file["sha256"], "contentSize": f"{(folder / name).stat().st_size} B"}
        for name, file in manifest["files"].items()
    ]
    description = DESCRIPTIONS["croissant"] | about | {"version": cohort.__version__}
    tables = [_record_set(folder / name) for name in manifest["files"]]
    return description | {"citeAs": manifest["cite"], "distribution": files, "recordSet": tables}


def _record_set(file: Path) -> Entity:
    """The rows of a table: their key, and name, type and meaning of each column."""
    table, columns = file.stem, list[Entity]()
    texts = (PARAMETERS if table == "runs" else {}) | DESCRIPTIONS["columns"]
    for field in parquet.read_schema(file):
        is_list = pa.types.is_list(field.type)
        kind = str(field.type.value_type if is_list else field.type)
        column = _entity(f"{table}/{field.name}", "cr:Field", name=field.name)
        column["dataType"] = {"double": "sc:Float", "int64": "sc:Integer"}.get(kind, "sc:Text")
        column["source"] = {"fileObject": {"@id": file.name}, "extract": {"column": field.name}}
        column |= {"description": texts[field.name]} if field.name in texts else {}
        column |= {"isArray": True, "arrayShape": "-1"} if is_list else {}
        if field.name == "digest" and table != "runs":
            column["references"] = {"field": {"@id": "runs/digest"}}
        columns.append(column)
    keys = [{"@id": f"{table}/{name}"} for name in ("digest", *DESCRIPTIONS["keys"][table])]
    return _entity(table, "cr:RecordSet", key=keys, field=columns)
