"""Logs to store and read."""

from datetime import UTC, datetime

from coordinator.store.logs.logs import LogBatch
from muster.domain.gangs.log import LogRecord, Stream, format_record
from muster.domain.ids import ExecutionId

E = ExecutionId("a-1-0")
START = datetime(2026, 11, 21, 8, 48, 50, tzinfo=UTC)
START_NS = int(START.timestamp()) * 10**9


def record(number: int, text: str | None = None, *, partial: bool = False, stream: Stream = Stream.STDOUT) -> LogRecord:
    """The one printed `number` seconds after the start."""
    content = f"line {number}" if text is None else text
    return LogRecord(time_ns=START_NS + number * 10**9, stream=stream, text=content.encode(), partial=partial)


def chunk(*records: LogRecord) -> bytes:
    return b"".join(map(format_record, records))


def texts(batch: LogBatch) -> list[str]:
    return [each.text.decode() for each in batch.records]


TEN = [record(number) for number in range(10)]
