"""The front of `cohort.native`: a network's outputs. (`test_same_steps.py` has its steps.)"""

from dataclasses import replace

import pytest
import torch
from torch import nn

from cohort.native import compiler
from cohort.native.network import predict
from cohort.training.evaluation import softmax_of
from tests.training.trainers.test_same_steps import network, photos


@pytest.mark.parametrize(
    "name", ["lenet5", "aml-lenet", "small-cnn", "small-mlp", "stratify-cnn", "vgg11"]
)
def test_outputs_in_evaluation(name: str, monkeypatch: pytest.MonkeyPatch):
    """Native outputs equal the network's but for rounding, without calling its forward pass."""
    samples = photos(32)
    for dtype, bound in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        model = network(name, (3, 32, 32)).to(dtype).eval()
        converted = replace(samples, mean=samples.mean.to(dtype), std=samples.std.to(dtype))
        chosen = torch.arange(len(samples.labels) - 1, -1, -1).repeat(3)
        with torch.inference_mode():
            expected = model(converted.inputs(chosen))
            with monkeypatch.context() as patch:
                patch.delattr(nn.Sequential, "forward")
                patch.setattr(compiler, "BATCHES", 1)
                outputs = predict(model, model.state_dict(), converted, chosen)
        assert outputs is not None
        assert (outputs - expected).abs().max() < bound * expected.abs().max()


class Doubled(nn.Linear):
    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return 2 * super().forward(inputs)


@pytest.mark.parametrize("layers", [[nn.Linear(768, 2), nn.Tanh()], [Doubled(768, 2)]])
def test_outputs_of_a_network_without_native_code(layers: list[nn.Module]):
    model = nn.Sequential(nn.Flatten(), *layers).double()
    samples, chosen = photos(), torch.arange(4)
    assert predict(model, model.state_dict(), samples, chosen) is None
    expected = model(samples.inputs(chosen)).softmax(dim=1)
    assert torch.equal(softmax_of(model, model.state_dict(), samples, chosen), expected)
