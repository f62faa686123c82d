"""Cohort as a module of another workflow: what Snakemake does not do for a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from cohort.core.errors import UserError
from cohort.pipeline.stages import exit_on_error

TRIGGERS = {"mtime", "params"}  # of reruns, as in profiles/default


def check_prefix(workflow: Any) -> None:
    """Raise a UserError if the workflow that uses Cohort as a module changes its files' paths."""
    modifier = workflow.modifier.path_modifier
    if modifier.prefix or modifier._prefix_replacements:
        raise UserError(
            "Cohort as a module takes no prefix or replace_prefix, because its jobs find files by "
            "their paths: run the workflow in a folder of its own (snakemake --directory)"
        )


def check_triggers(workflow: Any) -> None:
    """Raise a UserError if Snakemake would train finished cells again, for edited code or because
    shards were deleted."""
    others = sorted({str(trigger) for trigger in workflow.rerun_triggers} - TRIGGERS)
    if others:
        raise UserError(
            f"the rerun triggers {', '.join(others)} would train finished cells again: copy "
            "Cohort's profiles/default, or add --rerun-triggers mtime params"
        )


def attach_handlers(workflow: Any, handlers: Mapping[str, Callable[[], None]]) -> None:
    """Call handlers at the events of the using workflow, such as `onstart`, before its own
    handlers.

    Its own may be registered before or after the module is read. A module that is read a second
    time, to change a rule of it, is attached already.
    """
    if not hasattr(workflow, "cohort_is_attached"):
        workflow.cohort_is_attached = True
        for event, handler in handlers.items():
            _attach(workflow, event, exit_on_error(handler))


def _attach(workflow: Any, event: str, handler: Callable[[], None]) -> None:
    def with_handler(own: Callable[[str], None]) -> Callable[[str], None]:
        def both(log: str) -> None:
            handler()
            own(log)

        return both

    def register(own: Callable[[str], None]) -> None:
        """Register a handler as `onstart:` in a Snakefile does, with the module's handler kept."""
        getattr(type(workflow), event)(workflow, own)
        if workflow.modifier.is_main_snakefile():
            setattr(workflow, f"_{event}", with_handler(own))

    setattr(workflow, f"_{event}", with_handler(getattr(workflow, f"_{event}")))
    setattr(workflow, event, register)
