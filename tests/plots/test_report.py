"""The report is one whole page for any model, with its numbers in words."""

from __future__ import annotations

import base64
import dataclasses
import math
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import harmonium as hm
from harmonium.data import Column, Data
from harmonium.evaluation.classify.calibration import reliability
from harmonium.plots import write_report
from harmonium.plots.panels import draw_picture
from harmonium.plots.report import make_section
from harmonium.plots.verdict import health, verdict
from harmonium.runs import KINDS, Prepared
from harmonium.runs import panels as shown
from harmonium.runs.kinds import AnyKind, PanelMaker
from harmonium.runs.kinds.rbm import RBMKind
from harmonium.runs.subject import Subject
from harmonium.runs.trained import Trained
from harmonium.runs.words import number


class Settings:
    def model_dump(self) -> dict[str, dict[str, Any]]:
        return {"data": {"name": "tiny <set>", "options": {}}, "training": {"learning_rate": 0.05, "centering": False}}


@dataclass
class FakeRun:
    folder: Path
    model: nn.Module
    source: Data
    records: list[dict[str, Any]] = field(default_factory=list)
    scores: dict[str, Any] | None = None
    config: Settings = field(default_factory=Settings)
    kind: AnyKind = KINDS["rbm"]

    def trained(self) -> Trained:
        machine = isinstance(self.model, hm.BoltzmannMachine)
        shape = self.kind.shape(self.model, self.source) if machine else self.source.shape
        config: Any = self.config
        return Trained(
            config, Prepared(self.source), self.model, tuple(shape), records=self.records, scores=self.scores
        )


class Bowl(nn.Module):
    """A neural energy as far as a report can see: a free energy, and nothing else."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(()))

    def free_energy(self, x: Tensor) -> Tensor:
        return self.scale * x.square().sum(-1) / 2


class BowlKind(RBMKind):
    """A kind that cannot say where chains start."""

    def sections(self) -> tuple[str | PanelMaker, ...]:
        return "learning", "density", "energies"


class Parts(HTMLParser):
    """What a page refers to, says and shows."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.sources: list[str] = []
        self.tags: list[str] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in {"img", "meta"}:
            self.open.append(tag)
        self.sources += [value or "" for key, value in attrs if key in {"src", "href", "srcset", "data"}]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.text += data


EVALUATION = {
    "test": {
        "value": -85.31,
        "error": 0.04,
        "spread": 0.2,
        "lower": -85.5,
        "upper": -85.2,
        "kind": "sandwich",
        "n": 400,
    },
    "train": {"value": -84.0, "error": 0.04, "lower": -84.2, "upper": -83.9, "kind": "sandwich"},
    "baseline": {"name": "independent units", "value": -200.0, "spread": 0.3},
    "margin": {"value": 114.69, "error": 0.04, "spread": 0.15, "kind": "sandwich and exact"},
    "note": "binarized by x > 16/2",
    "messages": ["3 of 5 hidden units never fire."],
}
RECORDS = [
    {"epoch": 1, "reconstruction": 0.3, "r_hat": None, "log_likelihood": -9.0, "log_z_error": 0.1},
    {
        "epoch": 2,
        "reconstruction": 0.2,
        "r_hat": 1.1,
        "log_likelihood": math.nan,
        "messages": ["The chains do not mix."],
    },
]


def images(generator: torch.Generator) -> Data:
    x = (torch.rand(40, 1, 4, 4, generator=generator) > 0.5).to(torch.uint8)
    return Data("tiny", x[:20], x[20:30], x[30:], shape=(1, 4, 4), kind="binary", levels=1, note="drawn by chance")


def points(generator: torch.Generator) -> Data:
    x = torch.randn(300, 2, generator=generator)
    return Data("cloud", x[:200], None, x[200:], shape=(2,), kind="real", note="a standard normal law")


def image_run(folder: Path, generator: torch.Generator, **options: Any) -> FakeRun:
    """A flat model of images: the report puts them into their shape."""
    model = hm.RBM(hm.Bernoulli(16), hm.Bernoulli(5), generator=generator)
    return FakeRun(folder, model, images(generator), **options)


def written(run: FakeRun) -> tuple[str, Parts]:
    html = write_report(run, n_steps=10).read_text(encoding="utf-8")
    return html, Parts(html)


def figure_names(run: FakeRun) -> set[str]:
    return {path.stem for path in (run.folder / "figures").glob("*.png")}


def test_report_is_one_self_contained_page(tmp_path: Path, generator: torch.Generator) -> None:
    run = image_run(tmp_path / "run-1", generator, records=RECORDS, scores=EVALUATION)
    html, parts = written(run)
    assert run.folder.joinpath("report.html").is_file()
    assert not parts.open, "every tag is closed"
    assert "http" not in html and "url(" not in html and "@import" not in html
    assert not {"script", "link", "iframe", "object"} & set(parts.tags)
    assert parts.sources and all(source.startswith("data:image/png;base64,") for source in parts.sources)
    assert not re.search(r"\bnan\b|\binf\b|None", parts.text)
    assert "tiny <set>" in parts.text and "<set>" not in html
    assert not [path for path in run.folder.iterdir() if path.name not in {"report.html", "figures"}]


def test_the_check_for_references_can_fail() -> None:
    assert Parts('<p><img src="figures/a.png"></p>').sources == ["figures/a.png"]


def test_report_shows_what_an_image_model_has(tmp_path: Path, generator: torch.Generator) -> None:
    run = image_run(tmp_path, generator, records=RECORDS, scores=EVALUATION)
    _, parts = written(run)
    wanted = {"curve-reconstruction", "curve-r-hat", "curve-log-likelihood", "filters", "samples", "chains"}
    wanted |= {"reconstructions", "inpainting", "free-energies", "parameters", "activations", "singular-values"}
    assert figure_names(run) == wanted
    assert len(parts.sources) == len(wanted)
    shown = {base64.b64decode(source.partition(",")[2]) for source in parts.sources}
    assert shown == {path.read_bytes() for path in (tmp_path / "figures").glob("*.png")}
    assert "is −85.31 ± 0.04 (log Z) ± 0.20 (samples) nats a sample, between −85.50 and −85.20 by log Z" in parts.text
    assert "; training −84.00 ± 0.04 (log Z)" in parts.text and "Above the best simple law, independent" in parts.text
    assert "binarized by x > 16/2" in parts.text and "3 of 5 hidden units never fire." in parts.text
    assert "From epoch 2: The chains do not mix." in parts.text


def test_report_without_evaluation_or_metrics(tmp_path: Path, generator: torch.Generator) -> None:
    run = image_run(tmp_path, generator)
    _, parts = written(run)
    assert "has not been evaluated" in parts.text and "drawn by chance" in parts.text
    assert not [name for name in figure_names(run) if name.startswith("curve")]


def test_same_run_same_report(tmp_path: Path, generator: torch.Generator) -> None:
    run = image_run(tmp_path, generator)
    assert written(run)[0] == written(run)[0]
    other = write_report(run, n_steps=10, generator=torch.Generator().manual_seed(1)).read_text(encoding="utf-8")
    assert other != written(run)[0]


def test_report_of_points_in_the_plane(tmp_path: Path, generator: torch.Generator) -> None:
    data = points(generator)
    model = hm.RBM(hm.Gaussian(2), hm.Bernoulli(3), generator=generator)
    hm.initialize(model, data.train)
    run = FakeRun(tmp_path, model, data)
    _, parts = written(run)
    assert {"density", "landscape", "samples", "heat-map"} <= figure_names(run)
    assert not {"filters", "inpainting"} & figure_names(run)
    assert (
        "an evaluation of the run says" in parts.text
        and "single Gaussian" in parts.text
        and "log Z: exact" in parts.text
    )
    own, gaussian, margin = (
        float(found.replace("−", "-"))
        for found in re.search(r"samples: (\S+) nats;.*?data: (\S+) nats\. The margin is (\S+) ±", parts.text).groups()  # type: ignore[union-attr]
    )
    assert own == pytest.approx(hm.log_likelihood(model, data.test).mean().value, abs=1e-3)  # type: ignore[arg-type]
    assert margin == pytest.approx(own - gaussian, abs=2e-3)


def test_report_of_a_neural_energy(tmp_path: Path, generator: torch.Generator) -> None:
    run = FakeRun(tmp_path, Bowl(), points(generator), records=RECORDS, kind=BowlKind())
    _, parts = written(run)
    assert {"density", "landscape", "free-energies"} <= figure_names(run)
    assert not {"samples", "parameters", "heat-map"} & figure_names(run), "it cannot say where chains start"
    assert "log Z: quadrature" in parts.text


def test_report_of_a_table(tmp_path: Path, generator: torch.Generator) -> None:
    columns = (Column("age", "real"), Column("color", "categorical", ("blue", "green", "red")), Column("sex", "binary"))
    kinds = torch.eye(3)[torch.randint(3, (40,), generator=generator)]
    age, sex = torch.randn(40, 1, generator=generator), (torch.rand(40, 1, generator=generator) > 0.5).float()
    x = torch.cat([age, kinds, sex], dim=1)
    x[0, 0] = math.nan
    data = Data("people", x[:30], None, x[30:], shape=(5,), kind="table", columns=columns, note="3 columns")
    units = hm.Mixed(hm.Gaussian(1), hm.Categorical(1, 3), hm.Bernoulli(1))
    run = FakeRun(tmp_path, hm.RBM(units, hm.Bernoulli(4), generator=generator), data)
    written(run)
    assert {"heat-map", "samples", "free-energies"} <= figure_names(run)
    assert not {"filters", "chains", "inpainting"} & figure_names(run)


def test_report_of_hidden_layers_that_are_tied(tmp_path: Path, generator: torch.Generator) -> None:
    """A deep machine has no closed free energy: samples and filters are shown, free energies are not."""
    units = {"x": hm.Bernoulli(16), "h": hm.Bernoulli(12), "g": hm.Bernoulli(12)}
    terms = [(("x", "h"), hm.Dense(16, 12, generator=generator)), (("h", "g"), hm.Dense(12, 12, generator=generator))]
    run = FakeRun(tmp_path, hm.BoltzmannMachine(units, terms), images(generator))
    written(run)
    assert {"filters", "samples", "chains", "inpainting", "parameters"} <= figure_names(run)
    assert not {"free-energies", "reconstructions", "activations"} & figure_names(run)


def test_noise_keeps_single_values_and_loses_their_company(tmp_path: Path, generator: torch.Generator) -> None:
    line = torch.linspace(-1, 1, 200)[:, None].expand(200, 2)
    data = Data("line", line, None, None, shape=(2,), kind="real")
    model = hm.RBM(hm.Gaussian(2), hm.Bernoulli(2), generator=generator)
    subject = Subject(FakeRun(tmp_path, model, data).trained(), 10, generator)
    noise = subject.noise()
    torch.testing.assert_close(noise.sort(0).values, line.contiguous())
    assert torch.corrcoef(line.t())[0, 1] > 0.99
    assert torch.corrcoef(noise.t())[0, 1].abs() < 0.4  # six standard errors


def test_training_data_are_transformed_and_held_out_ones_are_not(tmp_path: Path, generator: torch.Generator) -> None:
    data = images(generator)
    flipped = dataclasses.replace(data, transform=lambda x, *, generator: 1 - x)
    run = dataclasses.replace(image_run(tmp_path, generator), source=flipped)
    subject = Subject(run.trained(), 10, generator)
    torch.testing.assert_close(subject.train, 1 - data.train.float().flatten(1))
    name, x = subject.held_out
    assert name == "test"
    torch.testing.assert_close(x, data.test.float().flatten(1))  # type: ignore[union-attr]


def test_verdict_in_words() -> None:
    exact = {"value": -1.7, "error": 0.0, "spread": 0.2, "lower": -1.7, "upper": -1.7, "kind": "exact", "n": 100}
    law = {"name": "a single Gaussian", "value": -1.9, "spread": 0.1}
    scores = {"test": exact, "baseline": law, "margin": {"value": 0.2, "error": 0.0, "spread": 0.05}}
    told = verdict("as drawn", scores, [])
    assert told[0].startswith("The test log-likelihood is −1.70 ± 0.20 (samples) nats a sample on 100 samples")
    assert "exact" in told[0] and "log Z" not in told[0] and "as drawn" in told[-1]
    assert "Above the best simple law, a single Gaussian with −1.90 ± 0.1 (samples) nats, by 0.20 ± 0.05" in told[1]
    worse = verdict("", scores | {"margin": {"value": -0.7, "error": 0.1, "spread": 0.1}}, [], ["The accuracy is 1."])
    assert worse[0].startswith(
        "WORSE THAN SIMPLE: the model lies 0.70 ± 0.1 (log Z) ± 0.1 (samples) nats below a single"
    )
    assert worse[1] == "The accuracy is 1."
    doubtful = exact | {"kind": "sandwich", "error": 3.0, "trusted": False, "note": "the bounds are 9 nats apart"}
    assert "Do not rely on this number: the bounds are 9 nats apart." in " ".join(verdict("", {"test": doubtful}, []))
    assert "± 3.00 (log Z) ± 0.20 (samples)" in verdict("", {"test": doubtful}, [])[0]
    record = {"log_likelihood": -9.0, "validation_log_likelihood": -9.5, "log_z_error": 0.25}
    running = verdict("", None, [record | {"validation_log_likelihood_spread": 0.5}])
    assert "−9.50 ± 0.25 (log Z) ± 0.5 (samples)" in running[0] and "not been evaluated" in running[0]
    assert verdict("", {"likelihood": "none: gray values"}, []) == ["Log-likelihood: none: gray values."]


def test_a_bound_is_said_to_be_one() -> None:
    """From above nothing is known, so that no interval is given; errors that are small keep a digit."""
    score = {"value": -24.1, "error": 0.0004, "spread": 0.2, "lower": -24.2, "upper": -24.0, "n": 9}
    told = verdict("", {"test": score | {"kind": "sandwich bound"}}, [])
    assert (
        told[0]
        == "The test log-likelihood is at least −24.100 ± 0.0004 (log Z) ± 0.200 (samples) nats a sample on 9 samples."
    )
    assert told[1].startswith(
        "How it was found: a lower bound, since hidden layers cannot be summed out; log Z by annealed"
    )
    exact = verdict("", {"test": score | {"kind": "exact bound", "error": 0.0}}, [])
    assert exact[1] == (
        "How it was found: a lower bound, since hidden layers cannot be summed out; Z was summed over all states."
    )
    plain = verdict("", {"test": score | {"kind": "sandwich"}}, [])
    assert (
        "at least" not in plain[0] and "between −24.200 and −24.000 by log Z" in plain[0] and "bound," not in plain[1]
    )


def test_data_without_nats_are_not_warned_of() -> None:
    warned = "Nats of data made otherwise cannot be compared"
    assert warned not in " ".join(verdict("drawn", {"likelihood": "none"}, []))
    assert warned in " ".join(verdict("drawn", {}, []))


def test_tests_of_samples_say_what_they_could_have_seen() -> None:
    tests = {"energy_distance": 0.012, "p_value": 0.09, "n": 500, "m": 400, "shift": 0.21, "share": None}
    tests |= {"told_apart": {"accuracy": 0.512, "error": 0.022, "n": 500}}
    said = " ".join(verdict("", {"likelihood": "none", "samples": tests}, []))
    assert (
        "p = 0.09 by permutation: no difference seen. The test finds a shift by 0.21 standard deviations, or not even"
        in said
    )
    assert "cannot be told" not in said and "51.2 ± 2.2 % of 500 cases; 50 % is chance: no difference seen" in said
    far = tests | {"told_apart": {"accuracy": 0.602, "error": 0.022, "n": 500}}
    assert "chance: they differ." in " ".join(verdict("", {"likelihood": "none", "samples": far}, []))
    assert "they differ" in " ".join(verdict("", {"likelihood": "none", "samples": tests | {"p_value": 0.001}}, []))


def test_messages_are_told_once() -> None:
    records = [{"epoch": e, "messages": ["dead units"]} for e in (3, 4)]
    assert health(None, records) == ["From epoch 3: dead units"]
    assert health({"messages": ["dead units"]}, records) == ["dead units"]


def test_numbers_that_are_none_are_dashes() -> None:
    assert [number(value) for value in (math.nan, math.inf, None, -0.5)] == ["–", "–", "–", "−0.50"]


def test_no_steps_is_an_error(tmp_path: Path, generator: torch.Generator) -> None:
    with pytest.raises(ValueError, match="`n_steps` must be at least 1"):
        write_report(image_run(tmp_path, generator), n_steps=0)


def test_a_kind_adds_panels_of_plain_data(tmp_path: Path, generator: torch.Generator) -> None:
    """Every kind of picture that a panel can have is drawn, and one that nobody knows is refused."""
    pixels = torch.rand(6, 1, 4, 4, generator=generator)
    bins = reliability(torch.eye(3)[torch.arange(9) % 3] * 0.9 + 1 / 30, torch.arange(9) % 3)
    machine = hm.RBM(hm.Bernoulli(16), hm.Bernoulli(3), generator=generator)
    pictures: list[shown.Shown] = [
        shown.ImageGrid("grid", "Images.", pixels, 3),
        shown.ImageRows("rows", "Rows.", {"above": pixels, "below": 1 - pixels}),
        shown.Filters("weights", "Filters.", machine, (1, 4, 4)),
        shown.Lines("lines", "Lines.", [1, 2], {"a": [1.0, 2.0], "b": [2.0, 1.0]}, levels={"level": 1.5}),
        shown.Bars("bars", "Bars.", {"here": 1.0, "there": 2.0}, errors={"here": 0.1, "there": 0.2}),
        shown.Heatmap("signed", "Signed.", torch.randn(3, 4, generator=generator)),
        shown.Heatmap("unsigned", "Unsigned.", torch.rand(3, 4, generator=generator)),
        shown.GroupedBars(
            "shares", "Shares.", ["no", "a rather long name $", "5"], {"a": [0.2, 0.3, 0.5], "b": [0, 0, 1]}
        ),
        shown.Histograms("histograms", "Values.", {"in": pixels.flatten(), "out": 2 * pixels.flatten()}),
        shown.Calibration("calibration", "Bins.", bins),
    ]

    class Showing(RBMKind):
        def sections(self) -> tuple[str | PanelMaker, ...]:
            return "parameters", lambda subject: shown.Panel("Everything", "All of it.", pictures), lambda subject: None

    run = dataclasses.replace(image_run(tmp_path, generator), kind=Showing())
    _, parts = written(run)
    own = {"parameters", "activations", "singular-values"}
    assert figure_names(run) == own | {picture.name for picture in pictures}
    assert "All of it." in parts.text and all(picture.caption in parts.text for picture in pictures)
    with pytest.raises(TypeError, match="no way to draw Shown"):
        draw_picture(shown.Shown("nothing", "Nothing."))
    with pytest.raises(ValueError, match="no section 'sounds' of a report. There are: learning, "):
        make_section("sounds", Subject(run.trained(), 10, generator))
