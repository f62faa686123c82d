"""A figure or table that a command names: its plan, its cells, and the command that rebuilds it."""

from __future__ import annotations

import argparse
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cohort.commands.planning import config_texts, load_plan
from cohort.core.errors import UserError, suggest
from cohort.pipeline.cell_states import CellStatus, find_slurm_logs, status_of
from cohort.plan import Plan, all_studies, require_study


@dataclass(frozen=True)
class Item:
    """A figure or table of a study, planned with these KEY=VALUE texts for the config."""

    plan: Plan
    study: str
    name: str
    config: Sequence[str] = ()

    @property
    def spec(self) -> dict[str, Any]:
        """The study's entry of the figure or table."""
        return self.plan.study(self.study).drawn_items()[self.name]

    def cells(self) -> list[CellStatus]:
        """The states of the cells that the item shows, of those that can be run here."""
        logs = find_slurm_logs()
        rows = self.plan.rows([self.study]).get((self.study, self.spec["experiment"]), [])
        return [status_of(self.plan.cells[row.digest], logs) for row in rows]

    @property
    def command(self) -> str:
        """The Snakemake command that rebuilds this item; empty if its study has no file."""
        if self.study not in all_studies():
            return ""
        others = [text for text in self.config if not text.startswith("scale=")]
        config = [f"scale={self.plan.scale}", *others]
        return shlex.join(["snakemake", f"{self.study}_{self.name}", "--config", *config])


def find_item(
    text: str, options: argparse.Namespace, study: str = "", content: dict[str, Any] | None = None
) -> Item:
    """Find the figure or table `STUDY.NAME` in the plan of these options, or `NAME` in `study`
    instead, which has this content. Raise UserError if there is none."""
    named, _, name = text.partition(".")
    plan = load_plan(options, studies=require_study(named))
    if content:
        plan.add(study, content)
    item = Item(plan, study or named, name, config_texts(options))
    drawn = plan.study(item.study).drawn_items()
    if name not in drawn:
        for note in plan.study(item.study).notes:
            if re.search(rf"[(, ]{re.escape(name)}[, ].*cannot be drawn", note):
                raise UserError(f"'{text}' waits: {note}")
        raise UserError(f"'{text}': {named} has no figure or table '{name}'{suggest(name, drawn)}")
    return item
