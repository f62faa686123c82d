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
        "Both trainers in one process, interleaved; ResNet-18 has batch normalization, which only "
        "the serial one takes. Memory: the most that tensors took on the GPU beyond what they took "
        "before. Difference: of the weights after the first round from those of the serial "
        "trainer, relative to the largest weight.",
    ),
}
"""The title of each piece and what its table shows; its module has its name."""
