"""The update of the last layer's bias, which tells of the classes that a client holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from cohort.needs.need import EvaluationContext, Need


@dataclass(frozen=True, kw_only=True)
class BiasUpdate(Need):
    """The server looks at how training changed the bias of each client's last layer (class). No
    message is sent for it, but no secure aggregation can hide this part of the updates then."""

    name: ClassVar[str] = "bias_update"
    gathered = "after"
    evaluates = False

    def measure(self, context: EvaluationContext) -> np.ndarray:
        *_, last = context.updates().values()
        return last
