"""Processors are told apart by what decides the last bits of a result."""

from __future__ import annotations

from pathlib import Path

import pytest

from cohort.training.job import machine as device


@pytest.mark.parametrize(
    ("cpuinfo", "name"),
    [
        ("processor\t: 0\nmodel name\t: AMD EPYC\ncpu MHz\t: 2600\n", "AMD EPYC (znver5)"),
        ("Features\t: fp asimd\n", "aarch64 (znver5)"),
    ],
)
def test_a_processor_is_named_with_its_microarchitecture(
    cpuinfo: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Virtual machines may hide the model: kernels follow the microarchitecture all the same."""
    (tmp_path / "cpuinfo").write_text(cpuinfo)
    monkeypatch.setattr(device, "CPUINFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(device.platform, "machine", lambda: "aarch64")
    monkeypatch.setattr(device.llvm, "get_host_cpu_name", lambda: "znver5")
    assert device.cpu_name.__wrapped__() == name
