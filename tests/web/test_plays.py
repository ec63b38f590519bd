"""Plays answer with known numbers: enumeration, closed forms, exact draws; and refuse what makes no sense in words."""

from __future__ import annotations

import base64
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from harmonium.data.lattice import binary_words
from harmonium.models import RBM
from harmonium.partition import exact_log_z
from harmonium.runs import KINDS, Run
from harmonium.runs.plays import Session
from harmonium.runs.plays.images import from_bytes, to_bytes
from harmonium.runs.plays.lesson import Lesson
from harmonium.runs.trained import Trained
from harmonium.samplers.in_time import generate
from harmonium.types import Estimate
from tests.web.conftest import Client


@pytest.fixture(scope="module")
def opened(made: Path) -> dict[str, Trained]:
    names = ("bars", "classes", "films", "memory", "moons", "pairs", "ratings", "table")
    return {name: Run.open(made / name).trained(rows=False) for name in names}


def play(trained: Trained, name: str, move: dict[str, Any], session: Session | None = None) -> dict[str, Any]:
    found = next(one for one in KINDS[trained.config.model.kind].plays() if one.name == name)
    assert found.suits(trained)
    found.opening(trained)
    return found.move(trained, session or Session(torch.Generator().manual_seed(0)), move)


def image(values: list[int]) -> str:
    return base64.b64encode(bytes(255 * v for v in values)).decode()


def test_bytes_go_there_and_back() -> None:
    x = torch.linspace(0, 1, 256)
    assert torch.equal(from_bytes({"x": to_bytes(x)}, "x", 256), torch.arange(256) / 255)
    for bad in ("", "AAA", "A" * 10_000, 7, None, "é"):
        with pytest.raises(ValueError, match="bytes in base64"):
            from_bytes({"x": bad}, "x", 4)


def test_which_plays_suit_which_runs(opened: dict[str, Trained]) -> None:
    def suited(name: str) -> set[str]:
        trained = opened[name]
        return {one.name for one in KINDS[trained.config.model.kind].plays() if one.suits(trained)}

    assert suited("bars") == {"chains", "drawing", "walk", "filters", "reconstructions"}
    assert suited("classes") == suited("bars") and suited("moons") == {"plane"}
    assert suited("memory") == {"memory"} and suited("table") == {"row"}
    assert suited("films") == {"sequel"} and suited("pairs") == {"analogy"} and suited("ratings") == {"shelf"}


def test_a_drawing_has_the_free_energy_and_the_hidden_means_of_the_machine(opened: dict[str, Trained]) -> None:
    trained, pixels = opened["bars"], [1, 0, 0, 1] * 4
    rbm: RBM = trained.model
    seen = play(trained, "drawing", {"x": image(pixels)})
    v = torch.tensor([pixels], dtype=torch.float32)
    assert seen["free_energy"] == pytest.approx(rbm.free_energy(v).item(), abs=1e-5)
    activity = from_bytes({"h": seen["hidden"]["hidden"]["values"]}, "h", 6)
    assert torch.allclose(activity, rbm.hidden_mean(v)[0], atol=0.003)
    assert from_bytes({"x": seen["image"]["pixels"]}, "x", 16).tolist() == pixels and seen["steps"] == 0


def test_classes_are_those_of_the_machine_and_a_held_label_changes_the_hidden_units(opened: dict[str, Trained]) -> None:
    trained = opened["classes"]
    x = (trained.data.test[:1].reshape(1, -1) > 0).float()
    drawn = image([int(v) for v in x[0]])
    seen = play(trained, "drawing", {"x": drawn})
    assert seen["classes"] == pytest.approx(trained.model.predict_proba(x)[0].tolist(), abs=1e-5)
    held = play(trained, "drawing", {"x": drawn, "label": 3})
    expected = trained.model.infer({"visible": x, "label": torch.tensor([3])})["hidden"][0]
    assert torch.allclose(from_bytes({"h": held["hidden"]["hidden"]["values"]}, "h", 16), expected, atol=0.003)
    with pytest.raises(ValueError, match="from 0 to 9"):
        play(trained, "drawing", {"x": drawn, "label": 10})


def test_filling_in_keeps_what_is_known(opened: dict[str, Trained]) -> None:
    known = [1] * 8 + [0] * 8
    move = {"x": image([1, 0] * 8), "known": image(known), "steps": 40, "fresh": True}
    ends = set()
    for seed in range(12):
        seen = play(opened["bars"], "drawing", move, Session(torch.Generator().manual_seed(seed)))
        values = from_bytes({"x": seen["image"]["pixels"]}, "x", 16).tolist()
        assert values[:8] == [1, 0] * 4 and seen["steps"] == 40
        ends.add(tuple(values[8:]))
    assert len(ends) > 1  # the others are drawn
    nothing = play(opened["bars"], "drawing", {**move, "steps": 40, "known": image([1] * 16), "fresh": True})
    assert from_bytes({"x": nothing["image"]["pixels"]}, "x", 16).tolist() == [1, 0] * 8


def test_hot_chains_are_coins(opened: dict[str, Trained]) -> None:
    seen = play(opened["bars"], "chains", {"n": 100, "steps": 3, "beta": 0.0})
    on = from_bytes({"x": seen["images"]["pixels"]}, "x", 1600).mean().item()
    assert abs(on - 0.5) < 4.9 * 0.5 / 40  # 1,600 fair coins, 4.9 standard errors
    with pytest.raises(ValueError, match="`beta` must be a number from 0 to 1"):
        play(opened["bars"], "chains", {"beta": 2.0})
    with pytest.raises(ValueError, match="no label"):
        play(opened["bars"], "chains", {"label": 1})


def test_time_ends_a_move(opened: dict[str, Trained]) -> None:
    session = Session(torch.Generator().manual_seed(0), until=-math.inf)
    assert play(opened["bars"], "chains", {"steps": 1000}, session)["steps"] == 1  # one step is always made


def test_a_walk_begins_and_ends_at_reconstructions(opened: dict[str, Trained]) -> None:
    trained = opened["bars"]
    seen = play(trained, "walk", {"from": 1, "to": 4})
    frames = from_bytes({"x": seen["images"]["pixels"]}, "x", 25 * 16).reshape(25, 16)
    ends = trained.model.reconstruct(trained.data.test[[1, 4]].reshape(2, -1).float())
    assert torch.allclose(frames[[0, -1]], ends, atol=0.003) and len(seen["free_energies"]) == 25


def test_the_landscape_is_the_free_energy(opened: dict[str, Trained]) -> None:
    trained = opened["moons"]
    seen = play(trained, "plane", {"steps": 1, "n": 5, "landscape": True})
    left, right, bottom, top = next(
        one for one in KINDS["gaussian-rbm"].plays() if one.name == "plane"
    ).opening(trained)["window"]  # fmt: skip
    n, low, cut = (seen["landscape"][name] for name in ("n", "low", "cut"))
    heights = from_bytes({"x": seen["landscape"]["values"]}, "x", n * n).reshape(n, n) * cut + low
    i, j = 10, 70  # row from the top, column
    at = torch.tensor([[left + (j + 0.5) / n * (right - left), top - (i + 0.5) / n * (top - bottom)]])
    free = trained.model.free_energy(trained.prepared.encoded(at)).item()
    assert heights[i, j].item() == pytest.approx(min(free, low + cut), abs=0.03) and len(seen["points"]) == 5


def test_a_memory_comes_back_downhill_and_takes_in_what_is_drawn(opened: dict[str, Trained]) -> None:
    trained = opened["memory"]
    session = Session(torch.Generator().manual_seed(0))
    pattern = trained.data.train[0].flatten()
    drawn = image([int(v > 0) for v in pattern])
    seen = play(trained, "memory", {"x": drawn, "action": "recall"}, session)
    assert seen["rests"] and seen["overlaps"][seen["nearest"]] == 1.0  # a stored pattern is a fixed point
    spoiled = play(trained, "memory", {"x": drawn, "action": "spoil", "share": 1.0}, session)
    assert seen["energies"][-1] == pytest.approx(trained.model.energy(pattern[None]).item(), abs=1e-5)
    assert from_bytes({"x": spoiled["images"]["pixels"]}, "x", 16).tolist() == [float(v < 0) for v in pattern]
    one = [int(v > 0) for v in pattern]
    one[5] = 1 - one[5]
    path = play(trained, "memory", {"x": image(one), "action": "recall"}, session)["energies"]
    assert all(b <= a + 1e-6 for a, b in zip(path, path[1:], strict=False))
    more = play(trained, "memory", {"x": image(one), "action": "store"}, session)
    assert more["patterns"]["n"] == 4 and trained.data.train.shape[0] == 3
    assert play(trained, "memory", {"action": "forget", "which": 3, "x": drawn}, session)["patterns"]["n"] == 3


def test_a_row_knows_what_goes_together(opened: dict[str, Trained]) -> None:
    usual = play(opened["table"], "row", {"cells": {"weight": 5.3, "color": "red"}})
    odd = play(opened["table"], "row", {"cells": {"weight": 2.2, "color": "red"}})
    assert usual["p_value"] > 0.05 > odd["p_value"] and odd["log_likelihood"] < usual["log_likelihood"]
    filled = play(opened["table"], "row", {"cells": {"weight": 5.3}})["filled"]["color"]
    assert filled["value"] == "red" and filled["probability"] > 0.9
    with pytest.raises(ValueError, match="weight is a number"):
        play(opened["table"], "row", {"cells": {"weight": "heavy"}})
    assert "not one of its levels" in play(opened["table"], "row", {"cells": {"color": "green"}})["messages"][0]


def test_a_film_goes_on_as_the_model_draws_it(opened: dict[str, Trained]) -> None:
    trained = opened["films"]
    held_out, first = trained.rows("test"), trained.model.order
    session = Session(torch.Generator().manual_seed(3))
    seen = play(trained, "sequel", {"film": 1, "frames": 0}, session)
    given = held_out[1, first - 1].tolist()
    for name in ("images", "truth"):  # the last frame that is given
        assert from_bytes({"x": seen[name]["pixels"]}, "x", 36).tolist() == given
    seen = play(trained, "sequel", {"film": 1, "frames": 4}, session)
    drawn = generate(trained.model, held_out[1:2, :first], 4, generator=torch.Generator().manual_seed(3))
    assert from_bytes({"x": seen["images"]["pixels"]}, "x", 144).tolist() == drawn.flatten().tolist()
    assert from_bytes({"x": seen["truth"]["pixels"]}, "x", 144).tolist() == held_out[1, first:][:4].flatten().tolist()
    assert seen["frame"] == first + 4 and not torch.equal(drawn[0], held_out[1, first:][:4])
    assert play(trained, "sequel", {"film": 1, "frames": 2}, session)["truth"]["n"] == 8 - first - 4  # it has eight
    assert play(trained, "sequel", {"film": 1, "frames": 2}, session)["truth"] is None
    assert play(trained, "sequel", {"film": 2, "frames": 1}, session)["frame"] == first + 1  # another begins anew
    with pytest.raises(ValueError, match="`film` must be a number"):
        play(trained, "sequel", {"film": 99})


def test_an_analogy_does_what_the_pair_does(opened: dict[str, Trained]) -> None:
    trained = opened["pairs"]
    pairs = trained.rows("test")
    drawing = [int(i % 3 == 0) for i in range(64)]
    other = 2.0 * torch.tensor([drawing]) - 1
    outputs = []
    for pair in (2, 3):
        seen = play(trained, "analogy", {"pair": pair, "x": image(drawing)})
        outputs.append(from_bytes({"x": seen["output"]["pixels"]}, "x", 64))
        expected = trained.model.apply_analogy(pairs[pair : pair + 1, 0], pairs[pair : pair + 1, 1], other)
        assert torch.allclose(outputs[-1], (expected[0] + 1) / 2, atol=0.003)
    assert not torch.equal(*outputs) and seen["hidden"]["hidden"]["n"] == 5
    with pytest.raises(ValueError, match="64 bytes"):
        play(trained, "analogy", {"x": image([0] * 9)})


def test_a_shelf_expects_what_the_machine_predicts(opened: dict[str, Trained]) -> None:
    trained = opened["ratings"]
    table = trained.data.train
    user = next(u for u in range(len(table)) if 1 < (~table[u].isnan()).sum() < table.shape[1])
    rated = (~table[user].isnan()).nonzero()[:, 0].tolist()
    other = table[user].isnan().nonzero()[:, 0].tolist()
    expected = trained.model.predict(table)[user]
    seen = play(trained, "shelf", {"user": user})
    assert [[i, level] for i, level, _ in seen["rated"]] == [[i, table[user, i].item()] for i in rated]
    assert {i for i, _, _ in seen["best"]} == set(other)
    for i, value in [(i, value) for i, _, value in seen["rated"]] + [(i, value) for i, value, _ in seen["best"]]:
        assert value == pytest.approx(expected[i].item(), abs=1e-5)
    assert [value for _, value, _ in seen["best"]] == sorted((value for _, value, _ in seen["best"]), reverse=True)
    level = 1.0 if table[user, rated[0]] > 2 else 5.0
    changed = table.clone()
    changed[user, rated[0]], changed[user, other[0]] = level, 4.0
    changed[user, rated[1]] = math.nan
    move = {"user": user, "ratings": {str(rated[0]): level, str(other[0]): 4, str(rated[1]): None}}
    after, known = play(trained, "shelf", move), trained.model.predict(changed)[user]
    assert {i for i, _, _ in after["rated"]} == (set(rated) | {other[0]}) - {rated[1]}
    assert all(value == pytest.approx(known[i].item(), abs=1e-5) for i, _, value in after["rated"])
    assert not torch.equal(known, expected) and torch.equal(table.isnan(), trained.data.train.isnan())
    for bad in ({"x": 1}, {"0": 9}, {"0": True}, {"99": 1}, [1], {"0": [1]}):
        with pytest.raises(ValueError, match="numbers of items|Items are numbers|A rating is one of"):
            play(trained, "shelf", {"user": user, "ratings": bad})


def test_the_lesson_counts_right() -> None:
    lesson = Lesson()
    words = binary_words(7).float()
    energies = lesson.small.energy({"visible": words[:, :4], "hidden": words[:, 4:]})
    seen = lesson.move({"step": "energy", "v": [1, 1, 0, 0], "h": [1, 0, 0]})
    assert seen["energy"] == pytest.approx(-2.0, abs=1e-6) and seen["lowest"] == pytest.approx(energies.min().item())
    assert seen["rank"] == 1 and seen["of"] == 128
    assert lesson.move({"step": "law", "beta": 0.0})["entropy"] == pytest.approx(math.log(128))
    law = lesson.move({"step": "law", "beta": 1.0})["probabilities"]
    z = Estimate.mean(exact_log_z(lesson.small)).value
    assert law[0] == pytest.approx(math.exp(-energies.min().item() - z), rel=1e-5) and sum(law) == pytest.approx(1)
    hidden = lesson.move({"step": "hidden", "v": [0, 1, 1, 0]})
    assert hidden["index"] == 6 and hidden["law"][6] == pytest.approx(math.exp(-hidden["free_energy"] - z), rel=1e-5)


def test_the_lesson_samples_learns_fills_in_and_estimates() -> None:
    lesson = Lesson()
    visits = lesson.move({"step": "sample", "steps": 2000})
    assert visits["n"] == 2000 and sum(visits["shares"]) == pytest.approx(1)
    start = lesson.move({"step": "learn"})
    assert start["curve"][0][1] == pytest.approx(-9 * math.log(2), abs=0.05)  # no better than coins
    assert start["best"] == pytest.approx(-(12 / 16 * math.log(16) + 2 / 8 * math.log(8)))
    for _ in range(2):
        learned = lesson.move({"step": "learn", "updates": 400})
    nats = [value for _, value in learned["curve"]]
    assert learned["best"] > nats[-1] > nats[0] + 1 and learned["mass"] > 5 * start["mass"]
    filled = lesson.move({"step": "fill", "pixels": [1, 1, 1] + [None] * 6})
    assert filled["exact"][:3] == pytest.approx([1, 1, 1]) and filled["drawn"][:3] == [1, 1, 1]
    estimate = lesson.move({"step": "estimate", "temperatures": 300, "chains": 64})
    for name in ("below", "above"):
        error = max(estimate[name]["error"], 0.02)
        assert abs(estimate[name]["value"] - estimate["exact"]) < 10 * error
    for bad in ({}, {"step": "x"}, {"step": "energy", "v": [2]}, {"step": "fill", "pixels": 3}, {"step": []}):
        with pytest.raises(ValueError, match="must be"):
            lesson.move(bad)


def test_plays_over_the_wire(client: Client) -> None:
    assert client.play("bars", "chains", {"steps": 3, "n": 4})["steps"] == 3
    assert client.play("bars", "chains", {"steps": 2, "n": 4})["steps"] == 5  # the session goes on
    assert client.play("bars", "chains", {"steps": 1, "n": 4}, session="b")["steps"] == 1  # another is another's
    status, seen = client.get("look", run="bars", play="filters")
    assert status == 200 and seen["images"]["n"] == 6
    assert client.post("play", run="bars", play="drawing", move={"x": "?"})[0] == 422
    assert client.post("play", run="bars", play="nothing", move={})[0] == 404
    assert client.post("play", run="bars", play="chains", move=[])[0] == 400
    assert client.post("tour", session="a", move={"step": "law"})[0] == 200


def test_all_who_watch_see_the_same_chains(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def look(play: str = "chains") -> tuple[int, Any]:
        return client.get("look", run="bars", play=play)

    monkeypatch.setattr("harmonium.web.opened.MOVING_SECONDS", math.inf)
    first, second = look()[1], look()[1]  # as two windows do
    assert first == second and first["steps"] == 100 and first["images"]["n"] == 25 and first["again"] == 0.25
    monkeypatch.setattr("harmonium.web.opened.MOVING_SECONDS", -1.0)
    third = look()[1]
    assert third["steps"] == 101 and third["images"] != first["images"]
    assert client.play("bars", "chains", {"steps": 2}, session="")["steps"] == 2  # who plays has chains of their own
    assert look()[1]["steps"] == 102
    assert look("filters")[1]["images"] == look("filters")[1]["images"]
    assert look("drawing")[0] == 404 and look("nothing")[0] == 404
    monkeypatch.setattr("harmonium.web.app.LOOKS_SECOND", 1)
    streams = [client.events(), client.events()]
    assert [next(stream)[0] for stream in streams] == ["runs", "runs"]
    assert look()[1]["again"] == 2  # seconds: the more watch, the less often each looks
    for stream in streams:
        stream.close()


def test_films_and_planes_are_watched_too(client: Client) -> None:
    film = client.get("look", run="films", play="sequel")[1]
    assert film["images"]["n"] == 1 and film["frame"] == 4  # three are given
    plane = client.get("look", run="moons", play="plane")[1]
    assert plane["landscape"]["n"] == 96 and len(plane["points"]) == 300
