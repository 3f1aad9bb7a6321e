"""How both programs log: one line a fact on standard error, a fixed sentence and its fields."""

import logging
from datetime import UTC, datetime

from muster.domain.visible_text import visible

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
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = {key: value for key, value in vars(record).items() if key not in _STANDARD}
        said = [f"{key}={_field(str(value))}" for key, value in fields.items()]
        line = " ".join([time, record.levelname.lower(), visible(record.getMessage()), *said])
        return f"{line}\n{_below(self.formatException(record.exc_info))}" if record.exc_info else line


def configure(level: str, *filters: logging.Filter) -> None:
    """Log from this level on to standard error what passes the filters."""
    handler = logging.StreamHandler()
    handler.setFormatter(FieldFormatter())
    for each in filters:
        handler.addFilter(each)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("alembic").setLevel(logging.WARNING)


def _field(value: str) -> str:
    """A value, cut where it is too long; in quotes where it could be taken for several fields, or for none."""
    if len(value) > LONGEST_TEXT:
        value = value[:LONGEST_TEXT] + "…"
    if value and not _AMBIGUOUS.intersection(value):
        return visible(value)
    return '"' + visible(value.replace("\\", "\\\\").replace('"', '\\"')) + '"'


def _below(traceback: str) -> str:
    """A traceback, indented: none of its lines looks like one of the journal's own."""
    return "\n".join(f"  {line}" for line in visible(traceback, lines=True).splitlines())
