"""Which clients should train next? Experiments in federated learning, from YAML to figures."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cohort.core.lazy import lazy

if TYPE_CHECKING:
    from cohort.pipeline import preview
    from cohort.results.release.folder import RunFrames
else:  # `import cohort` imports neither pandas nor planning
    preview = lazy("cohort.pipeline.preview")

__version__ = "0.1.0"


def load(study: str, source: str = "results", **config: Any) -> RunFrames:
    """The finished runs of a study as pandas frames: `runs`, `curves`, `clients` and others. They
    are read from the records in results/; with `source="released"` from the release that comes with
    the repository, with another folder from the release in it. Keywords override keys of
    config/config.yaml where records are read: `cohort.load("demo", scale="reduced")`."""
    return preview.load(study, source, **config)
