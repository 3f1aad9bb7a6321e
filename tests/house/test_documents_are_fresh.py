"""What the documents say follows from the code, and what they point to is there."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.generate_docs import ROOT, documents

LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)")
TARGET = re.compile(r"^([a-z0-9-]+):", re.MULTILINE)


def _written() -> Iterator[Path]:
    yield from ROOT.glob("*.md")
    yield from (ROOT / "docs").rglob("*.md")
    yield from (ROOT / "examples").rglob("*.md")


@pytest.mark.parametrize(("path", "text"), list(documents().items()), ids=lambda value: getattr(value, "name", ""))
def test_a_generated_document_is_what_the_code_gives(path: Path, text: str) -> None:
    assert path.read_text() == text, "run `make docs`"


@pytest.mark.parametrize("document", list(_written()), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_to_files_that_exist(document: Path) -> None:
    links = [link for link in LINK.findall(document.read_text()) if "://" not in link]
    assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize("document", list(_written()), ids=lambda path: str(path.relative_to(ROOT)))
def test_make_targets_that_are_named_exist(document: Path) -> None:
    targets = set(TARGET.findall((ROOT / "Makefile").read_text()))
    assert set(re.findall(r"`make ([a-z0-9-]+)", document.read_text())) <= targets
