"""How both programs log: one line a fact on standard error, a fixed sentence and its fields."""

import logging
from datetime import UTC, datetime

_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class FieldFormatter(logging.Formatter):
    """`2026-11-21T08:48:50.123Z info execution moved execution=j-1-0 to=running`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record, with the traceback below where there is one."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        fields = {key: value for key, value in vars(record).items() if key not in _STANDARD}
        line = " ".join([time, record.levelname.lower(), record.getMessage(), *(f"{k}={v}" for k, v in fields.items())])
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure(level: str) -> None:
    """Log from this level on to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(FieldFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.getLogger("alembic").setLevel(logging.WARNING)
