"""The time that a round waits for transfers of the model."""

from __future__ import annotations

import time

import safetensors.torch
from torch import nn

from cohort.training.ledger import Ledger
from cohort.training.updates import Weights


def charge_transfers(model: nn.Module, weights: Weights, number: int, ledger: Ledger) -> None:
    """Serialize the weights and load them into the model, once, and charge that time to each of
    `number` transfers in a row. Transfers to several clients at once count as one."""
    started = time.perf_counter()
    message = safetensors.torch.save({name: own.contiguous() for name, own in weights.items()})
    model.load_state_dict(safetensors.torch.load(message))
    ledger.transferred(number * (time.perf_counter() - started))
