"""Everything that needs a GPU. `make gpu` runs the same checks without pytest."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.gpu.checks import CHECKS, CUDA_ONLY, Check

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU here")


@pytest.mark.parametrize("check", [*CHECKS, *CUDA_ONLY], ids=lambda check: check.__name__)
def test_on_a_gpu(check: Check, tmp_path: Path):
    assert check(torch.device("cuda"), tmp_path)
