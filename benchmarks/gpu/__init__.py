"""`python -m benchmarks.gpu`: what needs a GPU, checked and measured in pieces of minutes."""

from __future__ import annotations

from benchmarks.peers import ROOT

RESULTS = ROOT / "benchmarks" / "results" / "gpu.json"

PIECES = {
    "checks": (
        "Checks",
        "`tests/gpu`: the batched trainer against the serial one, CUDA graphs, placement of cells, "
        "a killed cell, memory.",
    ),
    "rounds": (
        "Rounds by the batched and the serial trainer",
        "All trainers in one process, interleaved; of several cells the time of one. Memory: the "
        "most that tensors took on the GPU beyond what they took before. Error: of the weights "
        "after the first round, relative to those in float64 (difference: the largest, relative "
        "to the largest weight of the serial trainer).",
    ),
}
"""The title of each piece and what its table shows; its module has its name."""
