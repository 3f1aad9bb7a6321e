"""What the documents say follows from the code, and what they point to is there."""

import re
from collections.abc import Iterable, Iterator
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


def unnamed_rules(page: str, rules: Iterable[str]) -> list[str]:
    """Tests of the house without a row in the table of CONTRIBUTING.md."""
    return [rule for rule in rules if f"| `{rule}` |" not in page]


def unnamed_folders(page: str, folders: Iterable[str]) -> list[str]:
    """Folders that the list of modules in ARCHITECTURE.md does not have."""
    return [folder for folder in folders if not re.search(rf"[ ]{folder}/", page)]


def test_every_rule_of_the_house_has_its_row() -> None:
    rules = sorted(path.name for path in (ROOT / "tests" / "house").glob("test_*.py"))
    assert unnamed_rules((ROOT / "CONTRIBUTING.md").read_text(), rules) == [], "say in CONTRIBUTING.md what it wants"


@pytest.mark.parametrize("program", ["muster", "coordinator", "agent", "console"])
def test_every_folder_of_a_program_has_its_place_in_the_architecture(program: str) -> None:
    folders = sorted(path.parent.name for path in (ROOT / program).glob("*/__init__.py"))
    assert unnamed_folders((ROOT / "ARCHITECTURE.md").read_text(), folders) == [], (
        "say in ARCHITECTURE.md what it holds"
    )


def test_what_a_page_does_not_name_is_found() -> None:
    assert unnamed_rules("| `test_a.py` | this |\nalso `test_b.py`", ["test_a.py", "test_b.py"]) == ["test_b.py"]
    assert unnamed_folders("  jobs/  what\n  old-nodes/", ["jobs", "nodes"]) == ["nodes"]
