"""Images of one bright column, whose number is the class."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from cohort.data.split import Parser, Split


@dataclass(frozen=True, kw_only=True)
class Stripes(Parser):
    """A text file with the class of each image; the last fifth is for testing."""

    name: ClassVar[str] = "stripes"

    def parse(self, folder: Path) -> tuple[Split, ...]:
        labels = np.loadtxt(folder / "stripes.txt", dtype=np.int64)
        images = np.zeros((len(labels), 1, 4, 4), dtype=np.uint8)
        images[np.arange(len(labels)), 0, :, labels] = 200
        last = len(labels) * 4 // 5
        return Split(images[:last], labels[:last]), Split(images[last:], labels[last:])
