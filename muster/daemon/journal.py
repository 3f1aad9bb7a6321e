"""How both programs log: one line a fact on standard error, a fixed sentence and its fields, as text or as JSON."""

import argparse
import json
import logging
from collections.abc import Mapping
from datetime import UTC, datetime

from muster.domain.visible_text import visible, visible_json

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
_AMBIGUOUS = frozenset(' ="')

LONGEST_TEXT = 2_000
"""Characters of one field; what a peer sends must not make a line of mebibytes."""


class FieldFormatter(logging.Formatter):
    """`2026-11-21T08:48:50.123Z info execution moved execution=j-1-0 to=running`.

    Text from others stays in its own field of its own line.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record, with the traceback below where there is one."""
        said = [f"{key}={_field(str(value))}" for key, value in _fields(record)]
        line = " ".join([_time(record), record.levelname.lower(), visible(record.getMessage()), *said])
        return f"{line}\n{_below(self.formatException(record.exc_info))}" if record.exc_info else line


class JsonFormatter(logging.Formatter):
    """`{"time": "2026-11-21T08:48:50.123Z", "level": "info", "message": "execution moved", "execution": "j-1-0"}`.

    A traceback is a field of its own, so every line is one document.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        said: dict[str, object] = {
            "time": _time(record),
            "level": record.levelname.lower(),
            "message": _cut(record.getMessage()),
        }
        said |= {key: _plain(value) for key, value in _fields(record) if key not in said}
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return visible_json(json.dumps(said, ensure_ascii=False))


_FORMATTERS: Mapping[str, type[logging.Formatter]] = {"text": FieldFormatter, "json": JsonFormatter}


def add_format_option(parser: argparse.ArgumentParser, environ: Mapping[str, str]) -> None:
    """Let the format be chosen with `--log-format`, or with the variable MUSTER_LOG_FORMAT."""
    usual = environ.get("MUSTER_LOG_FORMAT", "text")
    if usual not in _FORMATTERS:
        parser.error(f"MUSTER_LOG_FORMAT: {usual!r} is none of {', '.join(_FORMATTERS)}")
    described = "form of each line of the journal: text, or one JSON object (%(default)s)"
    parser.add_argument("--log-format", choices=list(_FORMATTERS), default=usual, help=described)


def configure(level: str, *filters: logging.Filter, form: str = "text") -> None:
    """Log from this level on to standard error what passes the filters, as `text` or as `json`."""
    handler = logging.StreamHandler()
    handler.setFormatter(_FORMATTERS[form]())
    for each in filters:
        handler.addFilter(each)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("alembic").setLevel(logging.WARNING)


def _time(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> list[tuple[str, object]]:
    """What is said beside the sentence."""
    return [(key, value) for key, value in vars(record).items() if key not in _STANDARD]


def _plain(value: object) -> object:
    """A value as JSON has it; whatever JSON does not know is text."""
    return value if value is None or isinstance(value, (bool, int, float)) else _cut(str(value))


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[:LONGEST_TEXT] + "…"


def _field(value: str) -> str:
    """A value, cut where it is too long; in quotes where it could be taken for several fields, or for none."""
    value = _cut(value)
    if value and not _AMBIGUOUS.intersection(value):
        return visible(value)
    return '"' + visible(value.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _below(traceback: str) -> str:
    """A traceback, indented: none of its lines looks like one of the journal's own."""
    return "\n".join(f"  {line}" for line in visible(traceback, lines=True).splitlines())
