"""Every model comes back from its file as it was, and nothing strange comes out of one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn

import harmonium as hm
from harmonium.models import DenseHopfield
from harmonium.models.stored import describe
from harmonium.networks import SmallConv, SmallResidual
from harmonium.testing import ALL_COUPLINGS, ALL_UNITS


def machine_of(coupling: nn.Module, shapes: tuple[tuple[int, ...], ...]) -> hm.BoltzmannMachine:
    units = {f"layer{i}": hm.Bernoulli(*shape) for i, shape in enumerate(shapes)}
    return hm.BoltzmannMachine(units, [(tuple(units), coupling)])  # type: ignore[list-item]


MODELS = {
    "rbm": hm.RBM(hm.Gaussian(3, floor=0.01), hm.Bernoulli(2)),
    "double": hm.RBM(hm.Bernoulli(3), hm.Spin(2)).double(),
    "conv": hm.RBM(hm.Bernoulli(1, 6, 6), hm.Bernoulli(2, 3, 3), hm.Conv2d(1, 2, kernel=4, stride=2, padding=1)),
    "table": hm.RBM(hm.Mixed(hm.Bernoulli(2), hm.Gaussian(1), hm.Categorical(1, 3)), hm.Bernoulli(4)),
    "given": hm.BoltzmannMachine(
        {"x": hm.Bernoulli(3), "y": hm.Categorical(1, 2), "h": hm.Bernoulli(2)},
        [(("x", "h"), hm.Dense(3, 2)), (("y", "h"), hm.Dense((1, 2), 2)), (("x",), hm.Bias(3)), (("x",), hm.Bias(3))],
        given=["y"],
    ),
    "dbn": hm.DBN([hm.RBM(hm.Bernoulli(4), hm.Bernoulli(3)), hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2))]),
    "pooled": hm.DBN.from_spec("conv 2 3x3/1 pad 1 pool 2, dense 3", shape=(1, 4, 4)),
    "jem": hm.JEM(hm.MLP(4, 3, hidden=(5,)), box=(-2.0, 2.0), base_std=3.0),
    "neural": hm.NeuralEBM(SmallConv((1, 8, 8), channels=(4,), hidden=8)),
    "residual": hm.JEM(SmallResidual((1, 8, 8), 2, channels=(4, 4), spectral=True)),
    "hopfield": hm.Hopfield(5),
    "dense hopfield": DenseHopfield(4, n_patterns=3, order=3),
}
MODELS |= {f"unit {i} {make()}": hm.RBM(make(), hm.Bernoulli(2)) for i, make in enumerate(ALL_UNITS)}
MODELS |= {f"coupling {i}": machine_of(make(), shapes) for i, (make, shapes) in enumerate(ALL_COUPLINGS)}


@pytest.mark.parametrize("name", MODELS)
def test_a_model_comes_back(name: str, tmp_path: Path) -> None:
    model = MODELS[name].eval()
    model.save(tmp_path / "model.safetensors")
    again = hm.load(tmp_path / "model.safetensors")
    assert type(again) is type(model)
    assert repr(again) == repr(model)
    assert describe(again) == describe(model)
    ours, theirs = model.state_dict(), again.state_dict()
    assert list(ours) == list(theirs)
    assert all(torch.equal(ours[key], theirs[key]) and ours[key].dtype == theirs[key].dtype for key in ours)


def test_what_is_in_the_file_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    MODELS["rbm"].save(path)
    assert set(load_file(path)) == {"visible-hidden.weight", "visible.bias", "hidden.bias", "visible.log_sigma"}
    with safe_open(path, framework="pt") as file:
        described = json.loads(file.metadata()["model"])
    assert described["class"] == "RBM"
    assert described["visible"] == {"class": "Gaussian", "shape": [3], "initial_sigma": 1.0, "floor": 0.01}
    with pytest.raises(ValueError, match="is there already"):
        MODELS["rbm"].save(path)
    MODELS["rbm"].save(path, overwrite=True)
    MODELS["given"].save(tmp_path / "given.safetensors")
    assert {"x.bias", "x'.bias", "y-h.weight"} <= set(load_file(tmp_path / "given.safetensors"))
    MODELS["dbn"].save(tmp_path / "dbn.safetensors")
    assert "layers.1.visible-hidden.weight" in load_file(tmp_path / "dbn.safetensors")


class Mine(hm.RBM):
    """A class that harmonium does not know."""


def test_what_cannot_be_trusted_is_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    with pytest.raises(ValueError, match="Mine is not a class of harmonium"):
        Mine(hm.Bernoulli(2), hm.Bernoulli(2)).save(path)
    with pytest.raises(ValueError, match="Linear is not a class of harmonium"):
        hm.NeuralEBM(nn.Linear(2, 1), 2).save(path)
    assert not path.exists()
    with pytest.raises(ValueError, match="no folder .*nowhere to save into"):
        MODELS["rbm"].save(tmp_path / "nowhere" / "model.safetensors")
    with pytest.raises(ValueError, match="There is no file"):
        hm.load(path)
    path.write_bytes(b"no tensors")
    with pytest.raises(ValueError, match="is not a safetensors file"):
        hm.load(path)
    save_file({"weight": torch.zeros(1)}, path)
    with pytest.raises(ValueError, match="does not say what model it holds"):
        hm.load(path)
    for described, words in (
        ({"class": "Popen", "args": "ls"}, "'Popen', which is not a class of harmonium"),
        ({"class": "Hopfield", "shape": [3], "speed": 1}, "this version does not know"),
        ({"class": "Hopfield", "shape": [3]}, "it lacks"),
    ):
        save_file({"weight": torch.zeros(1)}, path, {"format": "harmonium-1", "model": json.dumps(described)})
        with pytest.raises(ValueError, match=words):
            hm.load(path)


@pytest.mark.parametrize("hidden", [hm.Bernoulli(4), hm.Spin(4), hm.Categorical(2, 2), hm.NReLU(4)], ids=repr)
def test_the_deterministic_pass_as_a_linear_layer(hidden: hm.units.Units, generator: torch.Generator) -> None:
    rbm = hm.RBM(hm.Gaussian(3), hidden, generator=generator).double()
    with torch.no_grad():
        rbm.hidden_bias.add_(0.3)
        rbm.visible.log_sigma.add_(0.5)  # type: ignore[operator]
    v = torch.linspace(-1, 1, 15, dtype=torch.float64).reshape(5, 3)
    linear = rbm.to_linear()
    torch.testing.assert_close(linear(v), rbm.hidden_mean(v), rtol=1e-12, atol=1e-12)
    with torch.no_grad():
        linear[0].weight.zero_()
    assert bool(rbm.weight.any())
    with pytest.raises(ValueError, match="dense coupling"):
        MODELS["conv"].to_linear()  # type: ignore[operator]


def test_the_deterministic_pass_is_exported() -> None:
    rbm = hm.RBM(hm.Bernoulli(3), hm.Bernoulli(2))
    v = torch.rand(2, 3, generator=torch.Generator().manual_seed(0))
    exported = torch.export.export(rbm.to_linear(), (v,))
    torch.testing.assert_close(exported.module()(v), rbm.hidden_mean(v))
