"""UCI's handwritten digits, which scikit-learn bundles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from cohort.data.parsers.parser import Parser
from cohort.data.sampling import draw_stratified
from cohort.data.split import Split

TEST_SAMPLES = 360


@dataclass(frozen=True, kw_only=True)
class Digits(Parser):
    """Parses UCI's handwritten digits, which scikit-learn bundles: 1,797 images of 8x8 pixels with
    values from 0 to 16. The file has no split: a stratified fifth is drawn for testing."""

    name: ClassVar[str] = "digits"

    def parse(self, folder: Path) -> tuple[Split, Split]:
        table = np.loadtxt(folder / "digits.csv.gz", delimiter=",", dtype=np.uint8)
        images, labels = table[:, :-1].reshape(-1, 1, 8, 8), table[:, -1]
        test = draw_stratified(labels, TEST_SAMPLES, "digits test split")
        train = np.setdiff1d(np.arange(len(table)), test)
        return Split(images[train], labels[train]), Split(images[test], labels[test])
