"""An evaluation as researchers write it: batches from a DataLoader, loss and right answers added up."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.protocol import serve
from benchmarks.variants.given import arguments, given_work, network, standardized


def main() -> None:
    """Evaluations, when told to."""
    given = given_work(arguments().folder)
    model, criterion = network(given), nn.CrossEntropyLoss(reduction="sum")
    data = TensorDataset(standardized(given.values), torch.from_numpy(given.labels))
    found: list[float] = []

    def step() -> None:
        model.eval()
        loss, right = 0.0, 0
        with torch.no_grad():
            for images, labels in DataLoader(data, batch_size=64):
                outputs = model(images)
                loss += criterion(outputs, labels).item()
                right += (outputs.argmax(dim=1) == labels).sum().item()
        found[:] = loss / len(data), right / len(data)

    serve(step, lambda: np.array(found))


if __name__ == "__main__":
    main()
