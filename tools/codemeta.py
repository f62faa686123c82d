"""`python -m tools.codemeta`: codemeta.json and .zenodo.json, from pyproject.toml and CITATION.cff."""

import json
import tomllib
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[1]


def descriptions() -> dict[str, dict[str, Any]]:
    """The content of both files, by name."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    common = {"version": citation["version"], "keywords": project["keywords"]}
    doi = {"identifier": f"https://doi.org/{citation['doi']}"} if "doi" in citation else {}
    codemeta = {
        "@context": "https://w3id.org/codemeta/3.0",
        "@type": "SoftwareSourceCode",
        "name": project["name"],
        "description": project["description"],
        **common,
        **doi,
        "license": f"https://spdx.org/licenses/{project['license']}",
        "author": [_codemeta_author(author) for author in citation["authors"]],
        "programmingLanguage": "Python",
        "runtimePlatform": f"Python {project['requires-python']}",
        "operatingSystem": "Linux",
        "developmentStatus": "active",
        "softwareRequirements": project["dependencies"],
    }
    zenodo = {
        "title": citation["title"],
        "description": citation["abstract"],
        "upload_type": "software",
        **common,
        "license": project["license"],
        "creators": [_zenodo_creator(author) for author in citation["authors"]],
    }
    return {"codemeta.json": codemeta, ".zenodo.json": zenodo}


def _codemeta_author(author: dict[str, str]) -> dict[str, str]:
    if "name" in author:
        return {"@type": "Organization", "name": author["name"]}
    person = {"givenName": author["given-names"], "familyName": author["family-names"]}
    return {"@type": "Person", **person} | ({"@id": author["orcid"]} if "orcid" in author else {})


def _zenodo_creator(author: dict[str, str]) -> dict[str, str]:
    name = author.get("name") or f"{author['family-names']}, {author['given-names']}"
    orcid = author.get("orcid", "").rpartition("/")[2]
    return {"name": name} | ({"orcid": orcid} if orcid else {})


def as_text(content: dict[str, Any]) -> str:
    """JSON as it is written to a file."""
    return json.dumps(content, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    for name, content in descriptions().items():
        (ROOT / name).write_text(as_text(content), encoding="utf-8")
