"""Without a GPU, a function that would be captured is called. tests/gpu has the rest."""

from __future__ import annotations

from pathlib import Path

import torch

from tests.gpu.trainers import captured_steps_equal_calls


def test_on_a_cpu_the_function_is_called(tmp_path: Path):
    result = captured_steps_equal_calls(torch.device("cpu"), tmp_path)
    assert result == "5 calls, 0 CUDA graphs"
