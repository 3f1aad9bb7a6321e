"""A person at the console, with Debian's chromium; and whoever looks whether the pages keep to the rules of the web."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.browsers.seen_console import SeenConsole
from tests.house.generate_pages import WEB
from tests.integration.npm_packages import installed, node

PATIENCE = 60_000.0
"""Milliseconds for anything that is waited for in a page."""
OPTIONS = ("--no-sandbox", "--disable-dev-shm-usage")
"""What chromium needs as root, and in containers."""
_REPORTING = """
window.violations = [];
addEventListener("securitypolicyviolation", (event) =>
  window.violations.push(`${event.violatedDirective}: ${event.blockedURI} ${event.sample}`));
"""
_RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@dataclass(slots=True)
class Visitor:
    """Somebody with a browser window at the console."""

    page: Page
    console: SeenConsole
    troubles: list[str] = field(default_factory=list)
    """What the pages threw, and what they asked of other machines."""

    def open(self, path: str) -> Page:
        """Go to a page; whoever is not signed in does so with a token, and comes to where they wanted."""
        self.page.goto(f"{self.console.url}{path}")
        self.page.locator(".shell, .sign-in form").first.wait_for()
        if self.page.locator(".sign-in form").count():
            self.sign_in()
        return self.page

    def sign_in(self) -> None:
        """Sign in with a token."""
        self.page.get_by_label("API token").fill(self.console.token)
        self.page.get_by_role("button", name="Sign in", exact=True).click()
        self.page.locator(".shell").wait_for()

    def paint(self, theme: str) -> None:
        """Have the system ask for `light` or `dark`."""
        self.page.emulate_media(color_scheme="dark" if theme == "dark" else "light")

    def findings(self) -> list[str]:
        """What axe finds on the page as it is."""
        if not self.page.evaluate("'axe' in window"):
            self.page.evaluate(_axe())
        found: dict[str, Any] = self.page.evaluate("rules => axe.run(document, {runOnly: rules})", _RULES)
        return [
            f"{each['id']}: {part['target']} {part.get('failureSummary', '')}"
            for each in found["violations"]
            for part in each["nodes"]
        ]

    def wrongs(self) -> list[str]:
        """What went against the policy of the pages, what they threw, and what they fetched from elsewhere."""
        return [*self.troubles, *self.page.evaluate("window.violations")]


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser; tests that need it are skipped where it is not installed."""
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("there is no chromium")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=[*OPTIONS])
        yield browser
        browser.close()


@contextmanager
def visitor(browser: Browser, console: SeenConsole, width: int = 1280, height: int = 800) -> Iterator[Visitor]:
    """Somebody who has never been here: without cookies, and with a window of this size."""
    context = browser.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce")
    context.add_init_script(_REPORTING)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    person = Visitor(page, console)
    page.on("pageerror", lambda error: person.troubles.append(str(error)))
    page.on(
        "request",
        lambda request: None if request.url.startswith(console.url) else person.troubles.append(request.url),
    )
    yield person
    context.close()


@cache
def _axe() -> str:
    node()
    packages = installed(WEB, ("package.json", "package-lock.json", ".npmrc"))
    return (packages / "node_modules" / "axe-core" / "axe.min.js").read_text()
