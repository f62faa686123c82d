"""The time that a round waits for transfers of the model."""

from __future__ import annotations

import time
from statistics import median

import safetensors.torch
from torch import nn

REPEATS = 3  # the first one is slower


def transfer_seconds(model: nn.Module) -> float:
    """Serialize the model's weights and load them into it again; return the median time of that."""
    return median(_measured_seconds(model) for _ in range(REPEATS))


def _measured_seconds(model: nn.Module) -> float:
    started = time.perf_counter()
    weights = {name: values.contiguous() for name, values in model.state_dict().items()}
    model.load_state_dict(safetensors.torch.load(safetensors.torch.save(weights)))
    return time.perf_counter() - started
