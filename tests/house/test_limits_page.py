"""The page on limits says what the code says."""

import importlib
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "limits.md"
ROWS = re.findall(r"^\| ([^|]+) \| ([0-9,]+)( KiB| MiB| GiB| s)? \| `([\w.]+)` \|", PAGE.read_text(), re.MULTILINE)
UNITS = {"": 1, " KiB": 1 << 10, " MiB": 1 << 20, " GiB": 1 << 30, " s": 1}


def value(path: str) -> object:
    """What a dotted path leads to."""
    words = path.split(".")
    split = next(number for number, word in enumerate(words) if not word.islower() or word.startswith("_"))
    found: object = importlib.import_module(".".join(words[:split]))
    for word in words[split:]:
        found = getattr(found() if isinstance(found, type) else found, word)
    return found


@pytest.mark.parametrize(("what", "number", "unit", "path"), ROWS, ids=[row[0] for row in ROWS])
def test_a_limit_is_what_the_page_says(what: str, number: str, unit: str, path: str) -> None:
    assert value(path) == int(number.replace(",", "")) * UNITS[unit], what


def test_every_row_of_the_page_is_looked_at() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "| limit |" not in line]
    assert len(ROWS) == len(rows) > 20
