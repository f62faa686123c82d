"""LSTMs that predict the next character of a text: embedding, LSTM, and a linear layer on the last
step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cohort.core.lazy import lazy
from cohort.models.model import Model, Shape

if TYPE_CHECKING:
    from torch import Tensor, nn
else:
    nn = lazy("torch.nn")

PADDING = 0  # the number that stands for no character


@dataclass(frozen=True, kw_only=True)
class CharLstm(Model):
    """The character LSTM that AML trains federatedly: one layer of 128 units on embeddings of size
    32, 95,824 parameters for 80 characters."""

    name: ClassVar[str] = "char-lstm"
    kinds: ClassVar[tuple[str, ...]] = ("text",)
    embedding: ClassVar[int] = 32
    hidden: ClassVar[int] = 128
    layers: ClassVar[int] = 1
    dropout: ClassVar[float] = 0.0
    padding: ClassVar[int | None] = PADDING

    def build(self, shape: Shape, classes: int) -> nn.Module:
        class Network(nn.Module):
            """Takes the characters of a text as numbers; scores the one that follows."""

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
    """The character LSTM that the AML paper describes: two layers of 128 units with dropout between
    them."""

    name: ClassVar[str] = "char-lstm-two"
    layers: ClassVar[int] = 2
    dropout: ClassVar[float] = 0.1


@dataclass(frozen=True, kw_only=True)
class CharLstmCentral(CharLstm):
    """The character LSTM that AML trains centrally: two layers of 256 units with dropout on
    embeddings of size 8, 819,655 parameters for 79 characters."""

    name: ClassVar[str] = "char-lstm-central"
    embedding: ClassVar[int] = 8
    hidden: ClassVar[int] = 256
    layers: ClassVar[int] = 2
    dropout: ClassVar[float] = 0.1
    padding: ClassVar[int | None] = None
