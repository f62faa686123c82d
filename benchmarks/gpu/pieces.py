"""The pieces, and where their results are kept. Nothing is imported but the standard library."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from benchmarks.peers import ROOT

RESULTS = ROOT / "benchmarks" / "results" / "gpu.json"
LIMIT_SECONDS = 420.0  # within which a piece measures, by default; it then repeats less
HANG_SECONDS = 110.0  # after which more a piece that hangs is stopped


class Piece(NamedTuple):
    """A measurement on a GPU: its title and what its table shows; its module has its name."""

    title: str
    about: str


PIECES: Mapping[str, Piece] = {
    "checks": Piece(
        "Checks",
        "`tests/gpu`: the batched trainer against the serial one, CUDA graphs, placement of cells, "
        "a killed cell, memory.",
    ),
    "rounds": Piece(
        "Rounds by the batched and the serial trainer",
        "Both trainers in one process, interleaved; ResNet-18 and EfficientNet-B0 have batch "
        "normalization, which only the serial one takes. TFLOPS: floating-point operations of the "
        "round, three times those of the forward passes, in a second. us/layer: microseconds for "
        "each layer of each step, where clients that step together count as one. Memory: the most "
        "that tensors took on the GPU beyond what they took before. Difference: of the weights "
        "after the first round from those of the serial trainer, relative to the largest weight. "
        "Estimated: by `cohort status --cost`, from config/gpus.yaml.",
    ),
    "cells": Piece(
        "Cells side by side",
        "Processes that share the GPU, each a cell with the batched trainer, as `jobs_per_gpu` "
        "allows. All play a round at the same time. Memory: what the GPU gave to all of them.",
    ),
    "steps": Piece(
        "Steps on one sample",
        "Microseconds per local step of one client with batch size 1: a trainer's whole round "
        "divided by its steps, or plain SGD steps captured as a CUDA graph.",
    ),
    "convolutions": Piece(
        "Convolutions with weights of their own for each client",
        "Outputs and both gradients of a layer for ten clients with 64 images each: a grouped "
        "convolution (what `vmap` makes of a convolution, and the batched trainer computes), "
        "unfolding (im2col and a batched matrix product), and one client after another. Each is a "
        "CUDA graph.",
    ),
}
