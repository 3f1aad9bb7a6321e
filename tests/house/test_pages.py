"""The committed pages of the console are what their sources give, and hold nothing that they must not."""

import json
import os
import re
from html.parser import HTMLParser

import pytest

from console.api.browser.page_files import INDEX, page_files
from tests.house.generate_pages import PAGES, SOURCES, WEB, build, committed, digest, looked_at, sources
from tests.integration.npm_packages import CACHE

FIRST_LOAD = 90 * 1024
"""Bytes of script, style and font that a browser fetches before the first page is there, as they are sent."""
WHOLE = 1_500_000
"""Bytes of all files together."""
AGAIN = "run `make web`, and commit what it changes"


def test_the_pages_were_built_from_these_sources() -> None:
    assert SOURCES.read_text() == digest(sources()), AGAIN


def test_the_pages_are_what_their_sources_give() -> None:
    known = CACHE / "pages-built"
    there = digest(looked_at()) + digest(committed())
    if known.exists() and known.read_text() == there and os.environ.get("MUSTER_REQUIRE_E2E") != "1":
        return  # this very build was compared on this machine before
    fresh, kept = build(), committed()
    stale = sorted(name for name in fresh.keys() | kept.keys() if fresh.get(name) != kept.get(name))
    assert not stale, AGAIN
    known.write_text(there)


def test_the_lock_file_names_no_registry() -> None:
    lock = json.loads((WEB / "package-lock.json").read_text())
    assert [name for name, package in lock["packages"].items() if "resolved" in package] == []
    assert all("integrity" in package for name, package in lock["packages"].items() if name)
    assert "http" not in (WEB / ".npmrc").read_text()


class _Inline(HTMLParser):
    """Finds scripts and styles that stand in a page itself, and what is loaded from elsewhere."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._within = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._within = tag
        for name, value in attrs:
            if name == "style" or name.startswith("on") or (name in {"src", "href"} and not str(value).startswith("/")):
                self.found.append(f"{tag} {name}={value}")

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002 - what ends does not matter
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within in {"script", "style"} and data.strip():
            self.found.append(f"{self._within}: {data.strip()}")


def inline(page: str) -> list[str]:
    reader = _Inline()
    reader.feed(page)
    return reader.found


def test_the_page_holds_no_script_and_no_style_and_loads_nothing_of_others() -> None:
    assert inline((PAGES / INDEX).read_text()) == []


@pytest.mark.parametrize(
    "page",
    [
        "<script>go()</script>",
        '<p style="color: red">',
        '<p onclick="go()">',
        "<style>p {}</style>",
        '<script src="https://x.example/a.js"></script>',
    ],
)
def test_what_it_must_not_hold_would_be_found(page: str) -> None:
    assert len(inline(page)) == 1


def test_the_pages_are_small() -> None:
    files = page_files()
    first = re.findall(r'(?:src|href)="/([^"]+)"', files[INDEX].content.decode())
    first += re.findall(
        r'from"\./([^"]+)"', next(files[name] for name in first if name.endswith(".js")).content.decode()
    )
    names = {name if name in files else f"assets/{name}" for name in first}
    sent = {name: len(files[name].packed or files[name].content) for name in names}
    assert sum(sent.values()) <= FIRST_LOAD, sent
    assert sum(len(content) for content in committed().values()) <= WHOLE


def test_the_licence_of_all_that_is_bundled_is_there() -> None:
    wanted = json.loads((WEB / "package.json").read_text())["dependencies"]
    text = (PAGES / "LICENSES").read_text()
    assert [name for name in (*wanted, "@preact/signals-core") if f"{name} " not in text] == []


def test_no_source_of_the_pages_makes_html_of_text() -> None:
    wrong = re.compile(r"dangerouslySetInnerHTML|innerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function")
    found = [str(path) for path in (WEB / "src").rglob("*.ts*") if wrong.search(path.read_text())]
    assert found == []
