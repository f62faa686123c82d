"""What a data set's parser is: its publisher's files in, training and test arrays out."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from cohort.components import Component


@dataclass(frozen=True)
class Split:
    """Samples as the publisher gives them: images as uint8 (samples, channels, height, width), labels from 0."""

    images: np.ndarray
    labels: np.ndarray


@dataclass(frozen=True, kw_only=True)
class Parser(Component):
    """Reads one data set's raw files. Its facts (sources, checksums, sizes, scaling) stand in config/datasets.yaml."""

    def parse(self, folder: Path) -> tuple[Split, Split]:
        """The training and the test split."""
        raise NotImplementedError
