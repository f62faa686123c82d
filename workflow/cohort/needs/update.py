"""The update of a client as one vector."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class Update(Need):
    """The server looks at each client's update, its trained weights minus the global ones, as one
    vector. No message is sent for it, but no secure aggregation can hide the updates then."""

    name: ClassVar[str] = "update"
    gathered = "after"
    evaluates = False

    def measure(self, context: EvaluationContext) -> np.ndarray:
        """Each client's update, flattened and concatenated (client, parameter)."""
        count = len(context.clients)
        parts = [update.reshape(count, -1) for update in context.updates().values()]
        return np.concatenate(parts, axis=1)
