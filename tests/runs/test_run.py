from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from harmonium.evaluation.likelihood import log_likelihood
from harmonium.plots.verdict import verdict
from harmonium.runs import Config, Run, evaluate, find_folders, inpaint, inventory, next_folder, prepare, resolve, train
from harmonium.runs.build import build_model
from harmonium.runs.inpaint import missing_mask
from harmonium.runs.kinds.rbm import visible_units
from harmonium.units import Bernoulli, Categorical, Gaussian, Mixed, Poisson


def config(name: str, /, binarize: str = "none", **model: Any) -> Config:
    return resolve(
        {
            "data": {"name": name, "binarize": binarize},
            "model": {"n_hidden": 4, **model},
            "training": {"epochs": 2, "n_chains": 8},
            "run": {"threads": 1},
        }
    )


def test_a_run_is_never_overwritten_unless_told(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    Run.create(folder, config("bars-and-stripes"))
    with pytest.raises(ValueError, match="already holds a run"):
        Run.create(folder, config("ising"))
    assert Run.open(folder).config.data.name == "bars-and-stripes"
    Run.open(folder).write_evaluation({"old": True})
    assert Run.create(folder, config("ising"), overwrite=True).evaluation() is None
    assert Run.open(folder).config.data.name == "ising"


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("dear")
    with pytest.raises(ValueError, match="other things in it"):
        Run.create(tmp_path, config("ising"), overwrite=True)
    assert (tmp_path / "letter.txt").exists()
    with pytest.raises(ValueError, match="holds no run"):
        Run.open(tmp_path)


def test_folders_are_numbered(tmp_path: Path) -> None:
    first = next_folder(tmp_path, config("ising"))
    assert first.name == "ising-rbm-1"
    Run.create(first, config("ising"))
    assert next_folder(tmp_path, config("ising")).name == "ising-rbm-2"
    assert [path.name for path in find_folders(tmp_path)] == ["ising-rbm-1"]


def test_gray_images_must_be_binarized_by_choice() -> None:
    with pytest.raises(ValueError, match="Choose how with --binarize"):
        prepare(config("digits"))
    assert prepare(config("digits", "threshold")).data.kind == "binary"
    scaled = prepare(config("digits", "scale")).data
    assert scaled.train.min() >= 0 and scaled.train.max() <= 1 and "x/16" in scaled.note
    assert prepare(config("digits", "resample")).data.transform is not None
    with pytest.raises(ValueError, match="Gaussian units are wrong"):
        prepare(config("ising", kind="gaussian-rbm"))
    with pytest.raises(ValueError, match="leave it out"):
        prepare(config("moons", "scale"))


def test_standardized_values_come_back(generator: torch.Generator) -> None:
    prepared = prepare(config("digits", kind="gaussian-rbm"))
    x = prepared.data.train
    assert x.mean().item() == pytest.approx(0, abs=1e-5) and "standardized" in prepared.data.note
    pixels = prepared.restored(x.flatten(1)) * 16
    assert torch.allclose(pixels, pixels.round(), atol=1e-3)
    assert pixels.shape[1:] == (1, 8, 8)


def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.csv"
    rows = [f"{i % 2},{'abc'[i % 3]},{i * 0.37:.2f}" for i in range(60)]
    path.write_text("\n".join(["switch,letter,size", *rows]))
    return path


def test_visible_units_follow_the_data(tmp_path: Path) -> None:
    np.save(tmp_path / "counts.npy", np.arange(60).reshape(20, 3))
    assert isinstance(visible_units(prepare(config("moons")).data), Gaussian)
    assert isinstance(visible_units(prepare(config("ising")).data), Bernoulli)
    assert isinstance(visible_units(prepare(config(str(tmp_path / "counts.npy"))).data), Poisson)
    mixed = visible_units(prepare(config(str(table(tmp_path)), kind="rbm")).data)
    assert isinstance(mixed, Mixed)
    assert [type(part) for part in mixed.parts] == [Gaussian, Bernoulli, Categorical]


@pytest.mark.parametrize("hidden", ["bernoulli", "spin", "nrelu", "gaussian", "binomial", "categorical"])
def test_every_hidden_unit_can_be_asked_for(hidden: str, tmp_path: Path) -> None:
    settings = config("bars-and-stripes", hidden=hidden)
    run = Run.create(tmp_path / "run", settings)
    train(run)
    rows = run.rows("train")
    assert rows is not None
    assert run.model().free_energy(rows).shape == (len(rows),)  # type: ignore[operator]


def test_evaluation_is_exact_where_it_can_be(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", config("bars-and-stripes"))
    with pytest.raises(ValueError, match="has no model yet"):
        run.model()
    train(run)
    assert run.finished and run.n_epochs == 2
    scores = evaluate(run)
    run.write_evaluation(scores)
    assert scores["test"]["kind"] == "exact"
    assert run.evaluation() == scores
    model, x = run.model(), run.rows("test")
    states = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * 16)
    log_z = (-model.free_energy(states)).double().logsumexp(0)  # type: ignore[operator]
    truth = (-model.free_energy(x).double() - log_z).mean().item()  # type: ignore[operator]
    assert scores["test"]["value"] == pytest.approx(truth, abs=1e-4)


def test_gray_values_as_probabilities_have_no_likelihood(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", config("digits", "scale"))
    train(run)
    scores = evaluate(run)
    assert "none" in scores["likelihood"] and "test" not in scores


def test_a_model_stands_beside_the_best_simple_law(tmp_path: Path) -> None:
    """The margin is the mean of the differences, sample by sample, with the error of the differences."""
    run = Run.create(tmp_path / "run", config("bars-and-stripes"))
    train(run)
    scores = evaluate(run)
    model, x, rows = run.model(), run.rows("test"), run.rows("train")
    n = rows.sum(0).double()  # type: ignore[union-attr]
    p = (n + 0.5) / (len(rows) + 1)  # type: ignore[arg-type]
    simple = torch.where(x > 0.5, p, 1 - p).log().sum(1)  # type: ignore[operator]
    assert set(scores["baselines"]) == {"independent units", "the uniform law"}
    assert scores["baselines"]["independent units"]["value"] == pytest.approx(simple.mean().item())
    assert scores["baselines"]["the uniform law"]["value"] == pytest.approx(-16 * math.log(2))
    assert scores["baseline"]["value"] == max(law["value"] for law in scores["baselines"].values())
    best = simple if scores["baseline"]["name"] == "independent units" else torch.full_like(simple, -16 * math.log(2))
    difference = log_likelihood(model, x).value - best
    assert scores["margin"]["value"] == pytest.approx(difference.mean().item(), abs=1e-6)
    assert scores["margin"]["spread"] == pytest.approx(difference.std().item() / math.sqrt(len(difference)), rel=1e-6)


def test_worse_than_simple_is_said_first(tmp_path: Path) -> None:
    settings = config("bars-and-stripes")
    run = Run.create(tmp_path / "run", settings)
    train(run)
    state = run.parameters("cpu")
    run.write_model({name: value + 3.0 * (name == "couplings.1.bias") for name, value in state.items()})
    scores = evaluate(run)
    lines = run.kind.lines(scores)
    assert lines[0].startswith("WORSE THAN SIMPLE: the model lies ") and "Train it longer" in lines[0]
    run.write_evaluation(scores)
    assert ", WORSE than " in run.listed().score
    assert verdict("", scores, [])[0] == lines[0]
    better = dict(scores) | {"margin": {"value": 1.0, "error": 0.1, "spread": 0.2}}
    assert run.kind.lines(better)[0].startswith("train log-likelihood")
    assert any("Above the best simple law" in line for line in run.kind.lines(better))
    assert "NO BETTER" in run.kind.lines(dict(scores) | {"margin": {"value": 0.3, "error": 0.1, "spread": 0.2}})[0]


def test_known_values_stay_when_the_rest_is_drawn(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", config("bars-and-stripes"))
    train(run)
    for missing in ("0.5", "half", "top", "left"):
        result = inpaint(run, missing, n=5, n_steps=3)
        known = ~result.given.isnan()
        assert 0 < known.float().mean() < 1
        assert torch.equal(result.filled[known], result.original[known])
        assert result.filled.shape == (5, 1, 4, 4)
    with pytest.raises(ValueError, match="share between 0 and 1"):
        inpaint(run, "most", n=2)


def test_columns_go_as_a_whole(tmp_path: Path, generator: torch.Generator) -> None:
    data = prepare(config(str(table(tmp_path)), kind="rbm")).data
    mask = missing_mask("0.5", data, 200, generator=generator)
    letter = mask[:, 2:5]
    assert torch.equal(letter.any(1), letter.all(1))
    assert 0.3 < letter.float().mean() < 0.7


def test_the_inventory_knows_what_is_missing(tmp_path: Path) -> None:
    items = {item.name: item for item in inventory(str(tmp_path))}
    assert items["digits"].embedded and not items["digits"].missing
    assert items["mnist"].missing[0] == "mnist/train-images-idx3-ubyte.gz"
    assert [name for name, item in items.items() if not item.embedded and not item.missing] == []
    (tmp_path / "faces-grey").mkdir()
    (tmp_path / "faces-grey/frey_faces.npz").write_bytes(b"")
    assert not {item.name: item for item in inventory(str(tmp_path))}["frey"].missing


def test_models_start_from_the_seed() -> None:
    settings = config("bars-and-stripes")
    data = prepare(settings).data
    one, two, other = (
        build_model(settings, data, generator=torch.Generator().manual_seed(seed)).state_dict() for seed in (0, 0, 1)
    )
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


def test_spread_components_start_as_probable_as_none() -> None:
    """With `c_j = -(bᵀW_j + ½‖W_j‖²)/σ²` the states with one active unit have the weight of the state with none."""
    settings = config("moons", options={"weight_scale": 0.3})
    rbm: Any = build_model(settings, prepare(settings).data, generator=torch.Generator().manual_seed(0))
    one = torch.cat([torch.zeros(1, 4), torch.eye(4)])
    weights = -rbm.energy({"hidden": one})
    assert torch.allclose(weights, weights[:1].expand(5), atol=1e-4)
    assert not torch.allclose(-rbm.energy({"hidden": torch.ones(1, 4)}), weights[:1], atol=1e-4)
    wrong = config("ising", options={"weight_scale": 1.0})
    data = prepare(wrong).data
    with pytest.raises(ValueError, match="Gaussian visible units"):
        build_model(wrong, data, generator=torch.Generator())


@pytest.mark.parametrize("hidden", ["gaussian", "nrelu"])
def test_unbounded_hidden_units_start_small_where_the_recipe_spreads_components(hidden: str) -> None:
    """Far apart they have no Z: with Gaussian units on both sides `E` must be positive definite, `|W/σ| < 1`."""
    largest = {}
    for name in ("bernoulli", hidden):
        settings = config("moons", hidden=name, options={"weight_scale": 3.0})
        rbm: Any = build_model(settings, prepare(settings).data, generator=torch.Generator().manual_seed(0))
        largest[name] = torch.linalg.matrix_norm(rbm.weight / rbm.visible.sigma[:, None], 2).item()
    assert largest[hidden] < 1 < largest["bernoulli"]


def test_a_run_whose_data_have_moved_is_the_same_run(tmp_path: Path) -> None:
    config = resolve({"data": {"name": "bars-and-stripes"}, "run": {"threads": 1}})
    Run.create(tmp_path / "run", config)
    moved = Run.open(tmp_path / "run", data_dir=tmp_path)
    moved.check_unchanged()
    Run.create(tmp_path / "run", resolve({"data": {"name": "ising"}, "run": {"threads": 1}}), overwrite=True)
    with pytest.raises(ValueError, match="holds another run by now"):
        moved.check_unchanged()
