"""What people give the models of the family by mistake, and what each then says."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

import harmonium as hm
from harmonium.samplers.in_time import complete, generate, predict

X = torch.tensor([[0.0, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 1]])
Y = torch.tensor([0, 1, 2, 1])
B = hm.Bernoulli
FILMS = X.expand(2, 4, 3)


def classifier() -> hm.ClassRBM:
    return hm.ClassRBM(B(3), B(2), 3)


def gated() -> hm.GatedRBM:
    return hm.GatedRBM(3, B(3), B(2), 2)


def film() -> hm.TemporalRBM:
    return hm.TemporalRBM(B(3), B(2), order=1)


def labeled(y: Any) -> Callable[[], object]:
    return lambda: hm.fit(classifier(), {"visible": X, "label": y}, epochs=1)


def network(y: torch.Tensor) -> Callable[[], object]:
    return lambda: hm.fit(hm.RBM(B(3), B(2)).to_network(3), (X, y), epochs=1)


MISTAKES: dict[str, tuple[Callable[[], object], str]] = {
    "spins as bits": (lambda: hm.fit(hm.Hopfield(3), X, epochs=1), r"hold -1 and 1 to match Spin\(3\). Got 0 and 1"),
    "spins as integers": (lambda: hm.fit(hm.Hopfield(3), X.long(), epochs=1), "Got 0 and 1 only"),
    "patterns as bits": (lambda: hm.Hopfield.store(X), "must hold -1 and 1 only"),
    "labels as floats": (labeled(Y.float()), r"class numbers as integers.* Got torch.float32 of shape \(4,\)"),
    "labels as flat vectors": (labeled(torch.eye(3)[Y]), r"one-hot vectors, \(\*batch, 1, 3\). Got .* shape \(4, 3\)"),
    "labels beyond": (labeled(Y + 1), r"must lie in 0..2, or be -1 where unknown. Got 1..3"),
    "no labels at all": (labeled(torch.full((4,), -1)), r"'label' are NaN \(of classes: -1\)"),
    "network, labels beyond": (network(Y + 1), "must lie in 0..2: the network has 3 outputs. Got 3"),
    "network, labels as floats": (network(Y.float()), "must be integers, -1 where unknown. Got torch.float32"),
    "no input": (lambda: hm.fit(gated(), X, epochs=1), "Layer 'input' is a condition"),
    "input alone": (lambda: hm.fit(gated(), {"input": X}, epochs=1), "conditions alone, 'input'.*Give layer 'output'"),
    "no factors": (lambda: hm.GatedRBM(3, B(3), B(2), 0), "`n_factors` must be a whole number, at least 1. Got 0"),
    "given in another shape": (
        lambda: hm.sample(classifier(), 2, given={"visible": torch.full((2, 4), math.nan)}),
        r"`given` must have shape \(\*batch, 3\) to match visible=Bernoulli\(3\). Got \(2, 4\)",
    ),
    "a film too short": (lambda: hm.fit(film(), FILMS[:, :1], epochs=1), "at least 2 frames for order=1. Got 1"),
    "no frames": (lambda: generate(film(), FILMS, 0), "`n_frames` must be at least 1. Got 0"),
    "no steps": (lambda: predict(film(), FILMS, n_steps=0), "`n_steps` must be at least 1. Got 0"),
    "no steps to complete": (lambda: complete(film(), FILMS, n_steps=0), "`n_steps` must be at least 1. Got 0"),
    "one hidden layer": (lambda: hm.DBM(B(3), B(2)), "at least two hidden layers. Got 2 in all"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_are_said(name: str) -> None:
    call, message = MISTAKES[name]
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "build",
    [
        lambda: hm.RBM(3, B(2)),
        lambda: hm.ClassRBM(3, B(2), 3),
        lambda: hm.SubspaceRBM(3, 2),
        lambda: hm.GatedRBM(3, 3, B(2), 2),
        lambda: hm.TemporalRBM(3, B(2)),
        lambda: hm.DBM(3, B(2), B(2)),
    ],
)
def test_numbers_are_not_units(build: Callable[[], object]) -> None:
    with pytest.raises(TypeError, match=r"must be units, such as Bernoulli\(6\). Got 3"):
        build()


def test_what_looks_like_a_mistake_and_is_none() -> None:
    """Means of spins may be all 0 or all 1, vectors of classes may be integers, and -1 is a label that is not known."""
    hm.Spin(3).check_support(torch.zeros(2, 3), "x")
    hm.Spin(3).check_support(torch.ones(2, 3), "x")
    hm.Spin(3).check_support(X * 2 - 1, "x")
    hm.fit(classifier(), {"visible": X, "label": torch.eye(3)[Y][:, None].long()}, epochs=1)
    hm.fit(classifier(), {"visible": X, "label": torch.tensor([0, -1, 2, 1])}, epochs=1)
    hm.fit(hm.RBM(B(3), B(2)).to_network(3), (X, torch.tensor([0, -1, 2, 1])), epochs=1)
