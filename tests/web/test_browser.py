"""Every view and every play in a real browser, on a run that is training meanwhile; accessibility, no console errors.

Chromium of the distribution, driven by Playwright; where there is none the tests are skipped in words.
"""

from __future__ import annotations

import shutil
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harmonium.learning import Callback, Training
from harmonium.learning.monitors import HealthWarning
from harmonium.runs import Run, train
from tests.web.conftest import Client
from tests.web.wait import until
from tests.web.window import PHONE, Window


@pytest.fixture(autouse=True)
def _no_troubles(window: Window) -> Iterator[None]:
    window.troubles.clear()
    yield
    assert not window.troubles


class Paced(Callback):
    """Leaves the processor to the browser between two epochs."""

    def __init__(self) -> None:
        self.over = threading.Event()

    def on_epoch(self, training: Training, record: dict[str, Any]) -> None:
        self.over.wait(0.1)


@pytest.fixture(scope="module")
def training(root: Path) -> Iterator[str]:
    """A run that trains while the tests look at it."""
    shutil.copytree(root / "bars", root / "learning")
    run = Run.open(root / "learning")
    run.extend(1_000_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HealthWarning)
        pace = Paced()
        thread = threading.Thread(target=lambda: train(run, callbacks=[pace]), daemon=True)
        thread.start()
        until(lambda: run.n_epochs > 6)
        yield "learning"
        run.ask_to_stop()
        pace.over.set()
        thread.join(30)


def open_play(window: Window, run: str, play: str, button: str) -> None:
    window.go(f"/run/{run}/play")
    window.wait("div[data-play]")
    if window.data("div[data-play]", "play") != play:
        window.click(button)
    window.wait(f"div[data-play='{play}'] [data-moves]")


def test_the_table_is_live(window: Window, root: Path, training: str) -> None:
    (root / "broken").mkdir()
    (root / "broken" / "config.toml").write_text("no settings [")
    window.go("/")
    window.wait("[data-ready]")
    rows = {row.get_attribute("data-run"): row.inner_text() for row in window.page.query_selector_all("tr[data-run]")}
    assert "training" in rows[training] and "finished" in rows["bars"] and "cannot be read" in rows["broken"]
    before = window.page.inner_text(f"tr[data-run={training}] .numbers")
    until(lambda: window.page.inner_text(f"tr[data-run={training}] .numbers") != before)
    shutil.rmtree(root / "broken")
    until(lambda: window.page.query_selector("tr[data-run=broken]") is None)
    window.page.fill("input[type=search]", "moons")
    assert [row.get_attribute("data-run") for row in window.page.query_selector_all("tr[data-run]")] == ["moons"]
    window.page.fill("input[type=search]", "nothing like it")
    assert "No run fits" in window.page.inner_text("main")
    window.page.fill("input[type=search]", "")
    window.accessible()


def test_curves_grow_and_pictures_follow(window: Window, training: str) -> None:
    window.go(f"/run/{training}")
    window.wait(".looks[data-version] figure")
    window.wait(".chart canvas")
    label = window.page.get_attribute(".chart", "aria-label")
    until(lambda: window.page.get_attribute(".chart", "aria-label") != label)
    titles = [t.inner_text() for t in window.page.query_selector_all("figure h2")]
    for wanted in ("Samples", "Filters", "Reconstructions", "Log-likelihood"):
        assert any(wanted in title for title in titles), titles
    version = window.data(".looks", "version")
    until(lambda: window.data(".looks", "version") != version)
    window.accessible()


def test_stop_and_resume(window: Window, root: Path, training: str) -> None:
    shutil.copytree(root / "bars", root / "again")
    Run.open(root / "again").extend(500_000)
    window.go("/run/again")
    window.wait("[data-status=stopped]")
    window.click("Resume")
    window.wait("[data-status=training]", 300_000)
    window.click("Stop")
    window.wait("[data-status=stopped]", 300_000)
    shutil.rmtree(root / "again")
    until(lambda: "This run is gone" in window.page.inner_text("main"))
    window.troubles[:] = [text for text in window.troubles if "Failed to load" not in text]  # it is gone: refused


def test_compare(window: Window) -> None:
    window.go("/")
    window.wait("[data-ready]")
    for name in ("bars", "moons"):
        window.page.check(f"tr[data-run={name}] input")
    window.click("Compare 2", role="link")
    window.wait("figure .chart canvas")
    until(lambda: "model.kind" in window.page.inner_text("table"))
    assert "bars" in window.page.inner_text("thead") and "moons" in window.page.inner_text("thead")
    window.accessible()


def test_settings(window: Window) -> None:
    window.go("/run/bars/settings")
    window.wait(".settings table")
    assert "bars-and-stripes" in window.page.inner_text(".settings")
    window.accessible()


def stroke(window: Window) -> None:
    box = window.page.query_selector("canvas.sketch").bounding_box()
    window.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.2 * box["height"])
    window.page.mouse.down()
    window.page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.8 * box["height"], steps=4)
    window.page.mouse.up()


def test_draw(window: Window) -> None:
    open_play(window, "classes", "drawing", "Draw")
    place = ".bench[data-moves]"
    before = window.page.inner_text("[data-energy]")
    window.changes(place, "moves", lambda: stroke(window))
    until(lambda: window.page.inner_text("[data-energy]") != before)
    assert len(window.page.query_selector_all(".bars meter")) == 10
    shares = window.page.eval_on_selector_all(".bars meter", "all => all.map(m => m.value)")
    assert abs(sum(shares) - 1) < 1e-3
    assert "units" in window.page.inner_text(".units figcaption")
    window.page.select_option("select[aria-label='Leave a part open']", label="left half")
    window.changes(place, "moves", lambda: window.click("Fill in"))
    window.changes(place, "moves", lambda: window.click("One step"))
    window.page.select_option("select[aria-label='Hold the label']", label="label: 7")
    window.page.fill("input[aria-label=Temperature]", "60")
    window.changes(place, "moves", lambda: window.click("Run"))
    window.click("Pause")
    window.changes(place, "moves", lambda: window.page.query_selector(".thumb").click())
    window.page.focus("canvas.sketch")  # by keyboard
    window.page.keyboard.press("ArrowLeft")
    window.changes(place, "moves", lambda: window.page.keyboard.press("Space"))
    window.changes(place, "moves", lambda: window.click("Clear"))
    picture = Path(__file__).parents[2] / "docs" / "images" / "chains.png"
    window.changes(place, "moves", lambda: window.page.set_input_files("input[type=file]", picture))
    window.accessible()


def test_chains_walk_and_plane(window: Window) -> None:
    open_play(window, "classes", "chains", "Chains")
    place = "div[data-play] .bench"
    window.changes(place, "moves", lambda: window.click("One step"))
    window.page.select_option("select[aria-label='Hold the label']", label="class 3")
    window.changes(place, "moves", lambda: window.click("100 steps"))
    window.changes(place, "moves", lambda: window.click("Start again"))
    window.accessible()
    window.click("Walk")
    window.wait("div[data-play=walk] [data-moves]")
    window.changes(place, "moves", lambda: window.page.get_by_label("end 3", exact=False).first.click())
    until(lambda: "F =" in window.page.inner_text(place))
    window.accessible()
    window.go("/run/moons/play")
    window.wait("div[data-play=plane] [data-moves]")
    window.changes(place, "moves", lambda: window.click("100 steps"))
    window.accessible()


def test_memory(window: Window) -> None:
    window.go("/run/memory/play")
    place = "div[data-play=memory] .bench"
    window.wait(f"{place}[data-moves]")
    window.changes(place, "moves", lambda: window.click("Spoil it"))
    window.changes(place, "moves", lambda: window.click("One sweep"))
    window.changes(place, "moves", lambda: window.click("Store it"))
    assert "4 in 16 units" in window.page.inner_text(place)
    window.changes(place, "moves", lambda: window.click("Recall"))
    window.accessible()


def test_row(window: Window) -> None:
    window.go("/run/table/play")
    place = "div[data-play=row] .bench"
    window.wait(f"{place}[data-moves]")
    window.changes(place, "moves", lambda: window.page.select_option("select[aria-label=color]", label="red"))
    assert "Nothing unusual" in window.page.inner_text(place)
    window.changes(place, "moves", lambda: window.page.fill("input[aria-label=weight]", "2.1"))
    until(lambda: "odd" in window.page.inner_text(".big").lower())
    window.accessible()


def test_film_analogy_and_shelf(window: Window) -> None:
    place = "div[data-play] [data-moves]"
    open_play(window, "films", "sequel", "Film")
    before = window.page.inner_text("main")
    window.changes(place, "moves", lambda: window.click("One frame"))
    window.changes(place, "moves", lambda: window.click("Run"))
    window.click("Pause")
    assert "frame" in before and window.page.inner_text("main") != before
    window.changes(place, "moves", lambda: window.page.get_by_label("film 2", exact=True).click())
    window.accessible()
    open_play(window, "pairs", "analogy", "Analogy")
    window.changes(place, "moves", lambda: stroke(window))
    window.changes(place, "moves", lambda: window.page.get_by_label("pair 3", exact=True).click())
    assert "5 units" in window.page.inner_text(".units figcaption")
    window.accessible()
    open_play(window, "ratings", "shelf", "Ratings")
    n = len(window.page.query_selector_all("tbody tr"))
    unrated = window.page.inner_text(".shelf li span")
    window.page.fill("input[aria-label='Item to rate']", unrated)
    window.changes(place, "moves", lambda: window.page.select_option("select[aria-label='Its rating']", label="5"))
    until(lambda: len(window.page.query_selector_all("tbody tr")) == n + 1)
    assert window.page.inner_text("tr.changed th") == unrated
    window.accessible()


TOUR: dict[int, tuple[str, Callable[[Window], Any]]] = {
    1: ("energy", lambda w: w.click("visible unit 1: 0")),
    2: ("entropy", lambda w: w.page.fill("input[type=range]", "0")),
    3: ("free", lambda w: w.click("visible unit 2: 0")),
    4: ("steps", lambda w: w.click("100 steps")),
    5: ("mass", lambda w: w.click("100 updates")),
    6: ("nats", lambda w: w.click("200 updates")),
    7: ("moves", lambda w: w.click("pixel 1: open")),
    8: ("rows", lambda w: w.click("Estimate log Z")),
}


def test_the_tour(window: Window) -> None:
    for step, (name, act) in TOUR.items():
        if step == 1:
            window.go("/tour/1")
        else:
            window.page.click(".turn .primary")
        window.page.wait_for_function(f"location.hash == '#/tour/{step}'")
        until(lambda name=name: window.data(".stage", name))  # type: ignore[misc]
        window.changes(".stage", name, lambda act=act: act(window))  # type: ignore[misc]
        window.accessible()


def test_a_phone_in_the_dark(browser: Any, client: Client, window: Window) -> None:
    context = browser.new_context(viewport=PHONE, color_scheme="dark", reduced_motion="reduce", has_touch=True)
    phone = Window(context.new_page(), client)
    for route, ready in {
        "/": "tr[data-run]",
        "/run/bars": ".looks[data-version] figure",
        "/run/classes/play": "div[data-play=drawing] [data-moves]",
        "/run/moons/play": "div[data-play=plane] [data-moves]",
        "/run/memory/play": "div[data-play=memory] [data-moves]",
        "/run/memory": ".looks[data-version] figure",
        "/run/bars/settings": ".settings table",
        "/run/table/play": "div[data-play=row] [data-moves]",
        "/run/films": ".looks[data-version] figure",
        "/run/films/play": "div[data-play=sequel] [data-moves]",
        "/run/pairs/play": "div[data-play=analogy] [data-moves]",
        "/run/ratings/play": "div[data-play=shelf] [data-moves]",
        "/compare/bars/moons": "figure .chart canvas",
        "/tour/5": ".stage[data-mass]",
    }.items():
        phone.go(route)
        phone.wait(ready)
        phone.accessible()
    assert not phone.troubles
    context.close()


def test_axe_can_complain(browser: Any, client: Client, window: Window) -> None:
    context = browser.new_context()
    bad = Window(context.new_page(), client)
    bad.page.set_content("<html><body><img src='data:,'><button></button></body></html>")
    with pytest.raises(AssertionError, match="image-alt"):
        bad.accessible()
    context.close()
