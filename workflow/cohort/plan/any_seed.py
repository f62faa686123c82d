"""The files of planned cells and shards at any seed: `--seeds 5` trains more than studies name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any

from cohort.core.paths import digest_in
from cohort.plan.loading import Plan
from cohort.settings import DIGEST, PlannedFile, digest_of, shard_identity
from cohort.training.cell import Cell

NAME = re.compile(rf"(?:clients\d+-)?seed(\d+)-({DIGEST})")


class FilesOfAnySeed:
    """The paths of records and shards that plans have, or would have with further seeds."""

    def __init__(self, plans: Iterable[Plan]):
        self._paths: set[Path] = set()
        self._by_folder: defaultdict[Path, list[Cell | PlannedFile]] = defaultdict(list)
        for plan in plans:
            every: Iterable[Cell | PlannedFile] = chain(plan.cells.values(), plan.shards.values())
            for planned in every:
                self._paths.add(path := Path(planned.path))
                self._by_folder[path.parent].append(planned)
        self._identities = cache(self._find_identities)

    def __contains__(self, path: object) -> bool:
        if path in self._paths or not isinstance(path, Path):
            return path in self._paths
        name = NAME.fullmatch(path.stem)
        return name is not None and any(
            digest_of(identity | {"seed": int(name[1])}, science) == name[2]
            for identity, science in self._identities(path.parent)
        )

    def _find_identities(self, folder: Path) -> list[tuple[dict[str, Any], Mapping[str, int]]]:
        """What the digests in a folder are made from, besides the seed, each once."""
        identities = {}
        for planned in self._by_folder.get(folder, []):
            identity = _identity(planned) | {"seed": 0}
            identities[digest_of(identity, planned.science)] = identity, planned.science
        return list(identities.values())


def _identity(planned: Cell | PlannedFile) -> dict[str, Any]:
    if isinstance(planned, Cell):
        return planned.identity()
    return shard_identity(planned.settings, digest_in(planned.inputs["data"]))
