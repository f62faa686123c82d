"""Matrix products in generated code, against numpy."""

from __future__ import annotations

import numpy as np
import pytest

from cohort.native.compiler import compile_function
from cohort.native.emitter import Emitter, Index
from cohort.native.lanes_layers import L1_SHARE, LanesLayout, Product
from cohort.native.layers import Layer
from cohort.native.target import CACHE_LINE, host

TARGET = host("double")
PARAMETERS = "ptr %memory", "ptr %weights", "i64 %first", "i64 %last"


def aligned(size: int) -> np.ndarray:
    """Zeros in float64 that begin on a cache line, as vectors are stored."""
    block = np.zeros(size + CACHE_LINE // 8)
    first = -block.ctypes.data % CACHE_LINE // 8
    return block[first : first + size]


@pytest.mark.parametrize("results", [3, 130])
@pytest.mark.parametrize("result_comes_first", [True, False])
def test_sums_begin_at_their_start(results: int, result_comes_first: bool):
    """Three results fit in the cache; 130, whose weights lie apart, are packed."""
    terms = 40
    is_large = results * terms * TARGET.size > L1_SHARE
    assert is_large == (results == 130)
    layers = [Layer((terms, 1, 1), results, 0)]
    layout = LanesLayout(layers, (terms, 1, 1), TARGET.lanes, TARGET)
    inputs, outputs = layout.arena.used, layout.arena.used + terms * TARGET.lanes
    emit, lanes = Emitter(TARGET), TARGET.lanes

    def start(result: Index) -> str:
        return emit.broadcast(emit.load_number("%weights", results * terms, (result, 1)))

    def store(value: str, block: Index, result: Index) -> None:
        emit.store(value, emit.pointer("%memory", outputs, (result, lanes)))

    def source(block: Index, term: Index) -> str:
        return emit.pointer("%memory", inputs, (term, lanes))

    with emit.function("multiply", *PARAMETERS, exported=True):
        product = Product(emit, layout, results, terms, source, store, start)
        product.emit_code("%weights", (1, results) if result_comes_first else (terms, 1))
    rng = np.random.default_rng(0)
    samples, starts = rng.normal(size=(terms, lanes)), rng.normal(size=results)
    weights = rng.normal(size=(results, terms))
    memory = aligned(outputs + results * lanes)
    memory[inputs:outputs] = samples.ravel()
    order = weights.T if result_comes_first else weights
    numbers = np.concatenate([order.ravel(), starts])
    run = compile_function(emit.llvm_ir(), emit.llvm_ir, "multiply", TARGET)
    run(memory.ctypes.data, numbers.ctypes.data, 0, 0)
    actual = memory[outputs:].reshape(results, lanes)
    assert actual == pytest.approx(weights @ samples + starts[:, None], rel=1e-12)
