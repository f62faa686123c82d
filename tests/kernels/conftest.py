"""Triton comes with PyTorch for GPUs, and with the test extra on Linux."""

import pytest

pytest.importorskip("triton")
