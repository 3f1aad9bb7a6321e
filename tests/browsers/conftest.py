"""One fleet and one console for all tests of pages, a browser for those of a module, a window of its own for each.

A browser runs an event loop in the thread of its tests, so it has ended before any `async def` test of another module.
"""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browsers.seen_console import SeenConsole, seen_console
from tests.browsers.visitor import Visitor, chromium, visitor


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SeenConsole]:
    with seen_console(tmp_path_factory.mktemp("console")) as seen:
        yield seen


@pytest.fixture
def person(browser: Browser, console: SeenConsole) -> Iterator[Visitor]:
    with visitor(browser, console) as somebody:
        yield somebody
        assert somebody.wrongs() == []
