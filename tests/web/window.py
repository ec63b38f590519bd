"""A window of a real browser: Chromium of the distribution, driven by Playwright."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.web.wait import until

if TYPE_CHECKING:
    from tests.web.conftest import Client

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
AXE = Path(__file__).with_name("axe") / "axe.min.js"
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}


class Window:
    """A page of the browser that remembers what went wrong in it."""

    def __init__(self, page: Any, client: Client) -> None:
        self.page, self.client = page, client
        self.troubles: list[str] = []
        page.on("console", lambda m: self.troubles.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.troubles.append(str(error)))
        page.on("request", lambda r: self._own(r.url))

    def _own(self, url: str) -> None:
        if not url.startswith((f"http://{self.client.address}/", "data:", "blob:")):
            self.troubles.append(f"asked for {url}")

    def go(self, route: str) -> None:
        self.page.goto(f"http://{self.client.address}/#{route}?token={self.client.token}")

    def wait(self, selector: str, timeout: float = 120_000) -> Any:
        return self.page.wait_for_selector(selector, timeout=timeout)

    def data(self, selector: str, name: str) -> str | None:
        return self.page.evaluate(f"document.querySelector({selector!r})?.dataset.{name} ?? null")

    def changes(self, selector: str, name: str, act: Callable[[], Any]) -> str:
        """Do something, and wait until it is seen."""
        before = self.data(selector, name)
        act()
        return until(lambda: (now := self.data(selector, name)) != before and now)

    def click(self, name: str, *, role: str = "button", exact: bool = True) -> None:
        self.page.get_by_role(role, name=name, exact=exact).first.click()

    def accessible(self) -> None:
        """Hold the page to axe-core's rules, and to its own width."""
        self.page.evaluate(AXE.read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
        told = [f"{v['id']}: {v['help']} {[n['target'] for n in v['nodes']][:3]}" for v in found]
        assert not told, "\n".join(told)
        assert self.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "wider than the window"
