"""From a click to changed pixels, and the first view of 200 runs, in Chromium.

    python -m benchmarks.web_latency

A 784–500 RBM (its weights are random: that costs the same) is drawn on, one click at a time; the time runs from the
event of the pointer to the frame in which the hidden units, the energy and the expected pixels have been drawn. Then
a folder of 200 runs is opened, from the start of the navigation to the frame with all their rows. Prints one line of
JSON.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
CLICK = """([x, y]) => new Promise((done) => {
  const place = document.querySelector(".bench[data-moves]");
  const sheet = document.querySelector("canvas.sketch");
  const box = sheet.getBoundingClientRect();
  const at = { bubbles: true, pointerId: 1, clientX: box.left + x * box.width, clientY: box.top + y * box.height };
  const seen = new MutationObserver(() => {
    seen.disconnect();
    requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
  });
  seen.observe(place, { attributes: true, attributeFilter: ["data-moves"] });
  sheet.setPointerCapture = () => {};
  const start = performance.now();
  sheet.dispatchEvent(new PointerEvent("pointerdown", at));
  sheet.dispatchEvent(new PointerEvent("pointerup", at));
})"""
FIRST = """() => new Promise((done) => {
  const check = () => {
    if (document.querySelectorAll("tr[data-run]").length < 200) setTimeout(check, 5);
    else requestAnimationFrame(() => setTimeout(() => done(performance.now())));
  };
  check();
})"""


def served(root: Path) -> Any:
    from harmonium.web.serve import Settings, prepare

    serving = prepare(Settings(root, port=0))
    threading.Thread(target=serving.run, daemon=True).start()
    while not serving.server.started:
        time.sleep(0.01)
    return serving


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clicks", type=int, default=60)
    chosen = parser.parse_args()
    from harmonium.cli.entry import run

    with tempfile.TemporaryDirectory() as place, sync_playwright() as driver:
        root = Path(place)
        np.save(root / "x.npy", (np.random.default_rng(0).random((400, 1, 28, 28)) < 0.3).astype(np.uint8))
        told = [
            "--data",
            str(root / "x.npy"),
            "--model",
            "rbm",
            "--epochs",
            "1",
            "--threads",
            "1",
            "--quiet",
            "--no-report",
            "--no-evaluate",
        ]
        run(["train", *told, "--n-hidden", "500", "-o", str(root / "one" / "run")])
        run(["train", *told, "--n-hidden", "4", "-o", str(root / "first")])
        for i in range(200):
            shutil.copytree(root / "first", root / "many" / f"run-{i}")
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        serving = served(root / "one")
        page.goto(serving.link.replace("#/?", "#/run/run/play?"))
        page.wait_for_selector(".bench[data-moves]", timeout=60_000)
        page.wait_for_timeout(1000)
        spots = np.random.default_rng(1).random((chosen.clicks + 5, 2)) * 0.9
        clicks = [page.evaluate(CLICK, [float(x), float(y)]) for x, y in spots][5:]
        serving.server.should_exit = True
        firsts = []
        for _ in range(5):  # each time another server, which has read nothing yet
            serving = served(root / "many")
            fresh = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            fresh.goto(serving.link)
            firsts.append(fresh.evaluate(FIRST))
            fresh.context.close()
            serving.server.should_exit = True
        browser.close()
    print(
        json.dumps(
            {
                "click_ms": {
                    "median": round(statistics.median(clicks), 1),
                    "p95": round(sorted(clicks)[int(0.95 * len(clicks))], 1),
                    "n": len(clicks),
                },
                "first_view_of_200_runs_ms": [round(x) for x in firsts],
            }
        )
    )


if __name__ == "__main__":
    main()
