"""Two modes that lie opposite each other: parallel tempering finds both where plain Gibbs sampling stays in one."""

from __future__ import annotations

import torch

import harmonium as hm

N_CHAINS, N_VISIBLE, N_STEPS = 400, 24, 150
LADDER = tuple(i / 9 for i in range(10))
PRODUCTS_OF_GIBBS = 2
"""A product down and a product up."""

PRODUCTS_OF_TEMPERING = 3 * len(LADDER)
"""The same at each rung, and a product for the energy that decides the trades."""


def two_modes() -> hm.RBM:
    """Return a machine whose units are on or off together: weights of 2.5, biases half against them.

    `p(v, h) = p(1 - v, 1 - h)`, so that each mode has exactly one half of the probability. A state on the way, with
    half of the units on, is e^{-28.6} as probable as the middle of a mode.
    """
    rbm = hm.RBM(hm.Bernoulli(N_VISIBLE), hm.Bernoulli(2)).double()
    with torch.no_grad():
        rbm.weight.fill_(2.5)
        rbm.visible_bias.copy_(-rbm.weight.sum(1) / 2)
        rbm.hidden_bias.copy_(-rbm.weight.sum(0) / 2)
    return rbm


def share_above(rbm: hm.RBM, sampler: hm.samplers.Sampler, n_steps: int, generator: torch.Generator) -> float:
    """Return how many chains end with more than half of their units on; all start with all units off."""
    off = torch.zeros(N_CHAINS, N_VISIBLE).double()
    v = hm.sample(rbm, N_CHAINS, sampler=sampler, n_steps=n_steps, start=off, generator=generator)
    return (v.mean(1) > 0.5).double().mean().item()


def test_the_modes_are_equal_and_far_apart() -> None:
    rbm = two_modes()
    v = torch.tensor([[0.0], [1.0]]).double().expand(2, N_VISIBLE)
    free = rbm.free_energy(v)
    assert torch.allclose(free[0], free[1])
    half = (torch.arange(N_VISIBLE) % 2).double()
    assert rbm.free_energy(half[None]).item() - free[0].item() > 28


def test_tempering_recovers_both_modes_where_gibbs_sees_one(generator: torch.Generator) -> None:
    """With as many products. Half of 400 chains within 5 standard errors (0.125): false alarms below 1e-6."""
    rbm = two_modes()
    tempered = share_above(rbm, hm.ParallelTempering(betas=LADDER), N_STEPS, generator)
    n_steps = N_STEPS * PRODUCTS_OF_TEMPERING // PRODUCTS_OF_GIBBS
    plain = share_above(rbm, hm.Gibbs(), n_steps, generator)
    assert abs(tempered - 0.5) < 0.125
    assert plain == 0.0
