"""The usual evaluation loop: batches from a DataLoader, summed loss and correct predictions."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.protocol import serve
from benchmarks.variants.inputs import arguments, network, standardized
from benchmarks.work import read_work


def main() -> None:
    """Serve evaluations of all samples; the result is loss and accuracy."""
    given = read_work(arguments().folder)
    model, criterion = network(given), nn.CrossEntropyLoss(reduction="sum")
    data = TensorDataset(standardized(given.values), torch.from_numpy(given.labels))
    metrics: list[float] = []

    def step() -> None:
        model.eval()
        loss, correct = 0.0, 0
        with torch.no_grad():
            for images, labels in DataLoader(data, batch_size=64):
                outputs = model(images)
                loss += criterion(outputs, labels).item()
                correct += (outputs.argmax(dim=1) == labels).sum().item()
        metrics[:] = loss / len(data), correct / len(data)

    serve(step, lambda: np.array(metrics))


if __name__ == "__main__":
    main()
