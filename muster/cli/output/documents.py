"""Values as JSON, YAML and CSV, for `-o`.

What writes them is loaded when there is something to be written: most answers are for people.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from math import isfinite

from muster.documents import Document, document
from muster.domain.visible_text import visible_json

_PLAIN = r"[A-Za-z/][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*"
_NOT_TEXT = frozenset({"null", "true", "false", "yes", "no", "on", "off", "y", "n"})


class Format(StrEnum):
    """How a command answers."""

    TABLE = "table"  #: as much as fits the terminal
    WIDE = "wide"  #: every column, and every cell whole
    JSON = "json"
    YAML = "yaml"

    @property
    def for_people(self) -> bool:
        """Whether the answer is a table or a sentence, and no document."""
        return self in {Format.TABLE, Format.WIDE}


class SheetFormat(StrEnum):
    """How a command answers whose rows spreadsheets can read as well."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


def text_of(value: object, form: Format) -> str:
    """The value as JSON or YAML, with a line end."""
    plain = document(value)
    if form is Format.JSON:
        return _json(plain, indent=2) + "\n"
    return "\n".join(_yaml(plain)) + "\n"


def line_of(value: object) -> str:
    """The value as JSON on one line, for streams."""
    return _json(document(value)) + "\n"


def csv_text(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> str:
    """A line of column names, then a line a row."""
    import csv
    from io import StringIO

    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _json(value: Document, *, indent: int | None = None, ascii_only: bool = False) -> str:
    import json

    return visible_json(json.dumps(value, indent=indent, ensure_ascii=ascii_only))


def _yaml(value: Document, indent: str = "") -> Iterator[str]:
    """Block YAML that readers of YAML 1.1 and 1.2 load alike: what could be taken for anything but text is quoted."""
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from _yaml_item(f"{_yaml_atom(key)}:", item, indent)
    elif isinstance(value, list) and value:
        for item in value:
            yield from _yaml_item("-", item, indent)
    else:
        yield indent + _yaml_atom(value)


def _yaml_item(head: str, item: Document, indent: str) -> Iterator[str]:
    if not isinstance(item, (dict, list)) or not item:
        yield f"{indent}{head} {_yaml_atom(item)}"
        return
    lines = _yaml(item, indent + "  ")
    if head == "-":
        yield f"{indent}- {next(lines).lstrip()}"
    else:
        yield indent + head
    yield from lines


def _yaml_atom(value: Document) -> str:
    if isinstance(value, str) and re.fullmatch(_PLAIN, value) and value.lower() not in _NOT_TEXT:
        return value
    if isinstance(value, float) and not isfinite(value):
        raise TypeError(f"{value} has no place in a document")
    return _json(value, ascii_only=not str(value).isprintable())
