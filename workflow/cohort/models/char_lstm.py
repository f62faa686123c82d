"""Recurrent networks that name the next character of a text: an embedding, LSTM layers and a linear layer on the last step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.models.model import Model, Shape

if TYPE_CHECKING:
    from torch import Tensor, nn

PADDING = 0  # the number of no character


@dataclass(frozen=True, kw_only=True)
class CharLstm(Model):
    """One layer of 128 units on embeddings of size 32: what AML trains federatedly, 95,824 parameters for 80 characters."""

    name: ClassVar[str] = "char-lstm"
    kinds: ClassVar[tuple[str, ...]] = ("text",)
    embedding: ClassVar[int] = 32
    hidden: ClassVar[int] = 128
    layers: ClassVar[int] = 1
    dropout: ClassVar[float] = 0.0
    padding: ClassVar[int | None] = PADDING

    def multiply_adds(self, shape: Shape, classes: int) -> int:
        first = 4 * self.hidden * (self.embedding + self.hidden)
        later = 4 * self.hidden * 2 * self.hidden * (self.layers - 1)
        return int(shape[0] * (first + later) + self.hidden * classes)

    def weights(self, shape: Shape, classes: int) -> int:
        first = 4 * self.hidden * (self.embedding + self.hidden + 2)
        later = 4 * self.hidden * (2 * self.hidden + 2) * (self.layers - 1)
        return classes * self.embedding + first + later + (self.hidden + 1) * classes

    def outputs(self, shape: Shape) -> int:
        """Of each unit at each character its state, its output, and its four gates before and after their nonlinearity."""
        return int(shape[0] * (self.embedding + 10 * self.hidden * self.layers))

    def build(self, shape: Shape, classes: int) -> nn.Module:
        from torch import nn

        class Network(nn.Module):
            """A text's characters in, what follows its last one out."""

            def __init__(self, model: CharLstm):
                super().__init__()
                self.embedding = nn.Embedding(classes, model.embedding, padding_idx=model.padding)
                self.lstm = nn.LSTM(
                    model.embedding,
                    model.hidden,
                    model.layers,
                    batch_first=True,
                    dropout=model.dropout,
                )
                self.linear = nn.Linear(model.hidden, classes)

            def forward(self, characters: Tensor) -> Tensor:
                steps, _ = self.lstm(self.embedding(characters))
                scores: Tensor = self.linear(steps[:, -1])
                return scores

        return Network(self)


@dataclass(frozen=True, kw_only=True)
class CharLstmTwo(CharLstm):
    """Two such layers with dropout between them: what the AML paper describes."""

    name: ClassVar[str] = "char-lstm-two"
    layers: ClassVar[int] = 2
    dropout: ClassVar[float] = 0.1


@dataclass(frozen=True, kw_only=True)
class CharLstmCentral(CharLstm):
    """Two layers of 256 units with dropout on embeddings of size 8: what AML trains centrally, 819,655 parameters for 79 characters."""

    name: ClassVar[str] = "char-lstm-central"
    embedding: ClassVar[int] = 8
    hidden: ClassVar[int] = 256
    layers: ClassVar[int] = 2
    dropout: ClassVar[float] = 0.1
    padding: ClassVar[int | None] = None
