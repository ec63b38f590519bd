"""Langevin steps on the energy of a network through `hm.sample`."""

from __future__ import annotations

import torch

import harmonium as hm
from benchmarks import peers, rows
from benchmarks.peers import ebmkit, torchebm
from benchmarks.runner import FLOOR, OURS, Bar, Case, Contender

STEP_SIZE = 0.01


def _build(quick: bool) -> list[Contender]:
    n_inputs, width, batch_size, n_steps = (16, 8, 10, 5) if quick else (784, 256, 100, 300)
    net = hm.MLP(n_inputs, hidden=(width, width), generator=rows.generator())
    frozen = hm.MLP(n_inputs, hidden=(width, width), generator=rows.generator()).requires_grad_(False)
    model = hm.NeuralEBM(net)
    start = torch.rand(batch_size, n_inputs, generator=rows.generator()) * 2 - 1

    def floor() -> None:
        x = start.clone().requires_grad_()
        for _ in range(n_steps):
            torch.autograd.grad(frozen(x).sum(), x)

    def run() -> None:
        sampler = hm.Langevin(step_size=STEP_SIZE)
        hm.sample(model, batch_size, sampler=sampler, n_steps=n_steps, generator=rows.generator(1))

    return [
        Contender(FLOOR, floor, "one forward and one input-gradient pass a step, parameters frozen, no noise"),
        Contender(OURS, run, "`hm.sample(hm.NeuralEBM(net), 100, sampler=hm.Langevin(), n_steps=300)`, with the noise"),
        *peers.installed(
            lambda: torchebm.langevin(net, start, STEP_SIZE, n_steps),
            lambda: ebmkit.langevin(net, start, STEP_SIZE, n_steps),
        ),
    ]


CASES = [
    Case(
        "langevin",
        "Langevin, MLP 784–256–256–1, batch 100, 300 steps",
        _build,
        (Bar(1.12, FLOOR), Bar(1.0, "torchebm"), Bar(1.0, "ebmkit")),
    )
]
