"""A person with a page of Jupyter Lab: `notebook_page.py CHROMIUM` does what each line on stdin says.

A line is `open URL`, `run CODE` or `sockets`, each a JSON list of words. The answer is a line of JSON.
"""

import json
import re
import sys
from collections.abc import Callable

from playwright.sync_api import Page, WebSocket, sync_playwright

PATIENCE = 60_000.0
"""Milliseconds for anything that is waited for."""

HAS_ENDED = re.compile(r"\[\d+\]")
"""What stands before a cell that has ended."""

AT_REST = "| Idle"
"""What stands after a kernel's name once the page has a connection to that kernel, and it does nothing."""

OPTIONS = ("--no-sandbox", "--disable-dev-shm-usage")
"""What chromium needs as root, and in containers."""


class NotebookPage:
    """One page, with a notebook once it was opened."""

    def __init__(self, page: Page) -> None:
        self._page = page
        self._sockets: list[tuple[WebSocket, list[str]]] = []
        page.set_default_timeout(PATIENCE)
        page.on("websocket", self._note)

    def open(self, url: str) -> str:
        """Open Jupyter Lab and a new notebook of Python; the page's title, once its kernel is there."""
        self._page.goto(url)
        self._page.locator('.jp-LauncherCard[data-category="Notebook"]').first.click()
        self._await_rest()
        return str(self._page.title())

    def run(self, code: str) -> str:
        """Run code in a new cell; what it shows once it has ended."""
        cells = self._page.locator(".jp-Notebook .jp-CodeCell")
        cell = cells.nth(cells.count() - 1)  # not `last`, which another one is once this one runs
        cell.locator(".cm-content").click()
        self._page.keyboard.insert_text(code)
        self._page.keyboard.press("Shift+Enter")
        cell.locator(".jp-InputPrompt", has_text=HAS_ENDED).wait_for()
        return "\n".join(cell.locator(".jp-OutputArea-output").all_inner_texts()).strip()

    def sockets(self) -> list[bool]:
        """Whether each WebSocket to a kernel that there ever was is still open."""
        return [not closed for socket, closed in self._sockets if "/api/kernels/" in socket.url]

    def _await_rest(self) -> None:
        # Not the mark in the notebook's own bar: that one says "idle" before there is a kernel, and a cell that is run
        # without one is taken for done.
        self._page.locator("#jp-main-statusbar", has_text=AT_REST).wait_for()

    def _note(self, socket: WebSocket) -> None:
        closed: list[str] = []
        self._sockets.append((socket, closed))
        socket.on("close", lambda _: closed.append("closed"))


def main() -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=sys.argv[1], args=[*OPTIONS])
        notebook = NotebookPage(browser.new_page())
        verbs: dict[str, Callable[..., object]] = {
            "open": notebook.open,
            "run": notebook.run,
            "sockets": notebook.sockets,
        }
        for line in sys.stdin:
            verb, *words = json.loads(line)
            print(json.dumps(verbs[verb](*words)), flush=True)
        browser.close()


if __name__ == "__main__":
    main()
