"""The networks, one file per family, and how to count their weights and operations."""

from cohort.core.components import Catalog
from cohort.models.networks import (
    AmlLeNet,
    CharLstm,
    CharLstmCentral,
    CharLstmTwo,
    EfficientNetB0,
    EfficientNetB3,
    LeNet5,
    Model,
    ResNet9,
    ResNet9GroupNorm,
    ResNet9Plain,
    ResNet18,
    ResNet20,
    SmallCNN,
    SmallMLP,
    StratifyCNN,
    StratifyMLP,
    Vgg11,
    Vgg11BatchNorm,
)

MODELS = Catalog(
    "cohort.models",
    Model,
    (
        AmlLeNet,
        CharLstm,
        CharLstmCentral,
        CharLstmTwo,
        EfficientNetB0,
        EfficientNetB3,
        LeNet5,
        ResNet18,
        ResNet20,
        ResNet9,
        ResNet9GroupNorm,
        ResNet9Plain,
        SmallCNN,
        SmallMLP,
        StratifyCNN,
        StratifyMLP,
        Vgg11,
        Vgg11BatchNorm,
    ),
)

__all__ = ["MODELS", "Model"]
