"""Each message about the health of a run appears when it should, and only then."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch

import harmonium as hm
from harmonium.learning.monitors import HealthWarning, Mixing
from harmonium.learning.monitors.health import Setup, messages

HEALTHY: dict[str, Any] = {
    "n_hidden": 500,
    "dead": 0,
    "saturated": 3,
    "free_energy": -100.0,
    "contrast": 0.5,
    "free_energy_gap": -1.0,
    "r_hat": 1.1,
    "n_draws": 100,
}


def after(records: list[dict[str, Any]], **setup: bool) -> list[str]:
    return messages(records[-1], records[:-1], Setup(**setup))


def test_a_healthy_run_is_left_in_peace() -> None:
    assert after([HEALTHY] * 10) == []
    assert after([{"epoch": 1}]) == []


def test_dead_units() -> None:
    dead = [HEALTHY | {"dead": 37, "n_rows": 256}]
    start = "37 of 500 hidden units never fire on the 256 rows looked at: "
    assert after(dead, decays=True, is_sparse=True) == [start + "lower the weight decay or the sparsity."]
    assert after(dead, is_sparse=True) == [start + "lower the sparsity."]
    # what the run does not have is not named
    assert after(dead) == [
        start + "lower the learning rate, center the gradient (Centering), or use fewer hidden units."
    ]
    assert after(dead, is_centered=True) == [start + "lower the learning rate, or use fewer hidden units."]


def test_saturated_units() -> None:
    (text,) = after([HEALTHY | {"saturated": 101}])
    assert text.startswith("101 of 500 hidden units are always on")
    assert "Centering" in text
    (text,) = after([HEALTHY | {"saturated": 101}], is_centered=True)
    assert text.endswith("Lower the learning rate.")
    assert after([HEALTHY | {"saturated": 100}]) == []


def test_drifting_phases() -> None:
    grown = [HEALTHY | {"contrast": c} for c in (-5.0, -10.0, -15.0, -20.0, -25.0)]
    text = "Positive and negative free energies drift apart: lower the learning rate or add steps."
    assert after(grown) == [text]
    assert after(grown[:4]) == []  # too early to say
    assert after(grown[:3] + [HEALTHY | {"contrast": -9.0}] + grown[3:]) == []  # up and down
    assert after([HEALTHY | {"contrast": c} for c in (0.1, 0.2, 0.3, 0.4, 0.5)]) == []  # small


def test_chains_that_do_not_mix() -> None:
    assert after([HEALTHY | {"r_hat": 2.0}]) == [
        "The chains do not mix: add steps, lower the learning rate, or use TemperedPCD."
    ]
    (text,) = after([HEALTHY | {"r_hat": 2.0}], is_tempered=True)
    assert text.endswith("lower the learning rate, or add temperatures.")
    assert after([HEALTHY | {"r_hat": 2.0, "n_draws": 10}]) == []


def test_over_fitting() -> None:
    records = [HEALTHY] * 5 + [HEALTHY | {"free_energy_gap": -20.0}]
    (text,) = after(records)
    assert "the model over-fits" in text and "add weight decay" in text
    assert "raise the weight decay" in after(records, decays=True)[0]
    assert after(records[2:]) == []
    assert after([HEALTHY] * 5 + [HEALTHY | {"free_energy_gap": 20.0}]) == []


def trained(hidden_bias: float, generator: torch.Generator) -> hm.learning.History:
    rbm = hm.RBM(hm.Bernoulli(6), hm.Bernoulli(10), generator=generator)
    with torch.no_grad():
        rbm.hidden_bias.fill_(hidden_bias)
    x = torch.eye(6).repeat(10, 1)
    optimizer = torch.optim.SGD(rbm.parameters(), 1e-3)
    return hm.fit(rbm, x, hm.CD(), optimizer=optimizer, epochs=3, batch_size=20, generator=generator)


@pytest.mark.parametrize(("bias", "text"), [(-20.0, "10 of 10 hidden units never fire"), (20.0, "are always on")])
def test_messages_are_warned_once_and_kept(bias: float, text: str, generator: torch.Generator) -> None:
    with pytest.warns(HealthWarning, match=text) as caught:
        history = trained(bias, generator)
    assert len(caught) == 1
    assert len(history.messages) == 1
    assert text in history.messages[0]


def test_no_message_without_cause(generator: torch.Generator) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert trained(0.0, generator).messages == []


def test_stuck_chains_are_noticed(generator: torch.Generator) -> None:
    """A machine of two deep valleys, its chains half in each: they never cross."""
    rbm = hm.RBM(hm.Spin(10), hm.Spin(10)).double()
    with torch.no_grad():
        rbm.weight.fill_(2.0)
    x = torch.cat([torch.ones(20, 10), -torch.ones(20, 10)]).double()
    objective = hm.PCD(n_chains=20, chains={"visible": x[10:30].clone(), "hidden": x[10:30].clone()})
    frozen = torch.optim.SGD(rbm.parameters(), 0.0)
    with pytest.warns(HealthWarning, match="The chains do not mix"):
        history = hm.fit(rbm, x, objective, optimizer=frozen, epochs=2, batch_size=1, monitors=[Mixing()],
                         generator=generator)  # fmt: skip
    assert history.last["r_hat"] > 1.5


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "lower the learning rate, center the gradient"),
        ({"transforms": [hm.WeightDecay(0.0)]}, "lower the learning rate, center the gradient"),
        ({"transforms": [hm.WeightDecay(1e-3)]}, "lower the weight decay."),
        ({"transforms": [hm.Sparsity(0.1, 1e-9), hm.WeightDecay(1e-3)]}, "lower the weight decay or the sparsity."),
        ({"transforms": [hm.Centering()]}, "lower the learning rate, or use fewer hidden units"),
    ],
)
def test_messages_name_what_the_run_has(options: dict[str, Any], said: str, generator: torch.Generator) -> None:
    rbm = hm.RBM(hm.Bernoulli(6), hm.Bernoulli(10), generator=generator)
    with torch.no_grad():
        rbm.hidden_bias.fill_(-40.0)
    optimizer = torch.optim.SGD(rbm.parameters(), 1e-6)
    with pytest.warns(HealthWarning, match="10 of 10 hidden units never fire on the 6 rows looked at"):
        history = hm.fit(rbm, torch.eye(6), optimizer=optimizer, epochs=1, generator=generator, **options)
    assert said in history.messages[0]


def test_a_monitor_that_is_no_number_is_told_of() -> None:
    record = {"epoch": 1, "reconstruction": float("nan"), "r_hat": float("inf"), "n_draws": 30}
    said = messages(record, [])
    assert "reconstruction is not a number (NaN)" in said[0] and "do not mix" in said[1]
    assert not messages({"epoch": 1, "reconstruction": 0.5}, [])


def test_an_average_is_advised_only_where_there_is_none() -> None:
    """That particles lose a mode is the cause in every run; that the parameters are not averaged, only in some."""
    record = {"epoch": 1, "log_z_error": 1.5}
    (plain,), (averaged,) = (after([record], is_averaged=is_averaged) for is_averaged in (False, True))
    assert "ParameterAverage" in plain and "ParameterAverage" not in averaged
    assert all("lost a mode" in text and "log_likelihood" in text for text in (plain, averaged))
    assert not after([record | {"log_z_error": 0.5}])
