"""What coordinator and agents log: tests wait for it, and no test may leave an error behind in it."""

import asyncio
import logging

GRPC_LEFTOVER = "PollerCompletionQueue._handle_events"
"""gRPC may hand an event of the test before, whose loop is closed, to the loop of this one (grpc/grpc#42357)."""


class Journal(logging.Handler):
    """Keeps every record from INFO on, as the event loop hears of it."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.records: list[logging.LogRecord] = []
        self._loop = asyncio.get_running_loop()
        self._waiters: set[asyncio.Event] = set()
        self._before = logging.getLogger().level

    def start(self) -> None:
        """Listen to everything."""
        logging.getLogger().addHandler(self)
        logging.getLogger().setLevel(logging.INFO)
        logging.getLogger("alembic").setLevel(logging.WARNING)

    def stop(self) -> None:
        """Listen no more."""
        logging.getLogger().removeHandler(self)
        logging.getLogger().setLevel(self._before)

    def emit(self, record: logging.LogRecord) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._keep, record)

    async def heard(self, message: str, times: int = 1, **fields: str) -> logging.LogRecord:
        """Wait until it has been logged so many times; the last of these records."""
        news = asyncio.Event()
        self._waiters.add(news)
        try:
            while len(found := self.said(message, **fields)) < times:
                await news.wait()
                news.clear()
        finally:
            self._waiters.discard(news)
        return found[times - 1]

    def said(self, message: str, **fields: str) -> list[logging.LogRecord]:
        """The records with this message and these fields, of each of which a part is enough."""
        return [
            record
            for record in self.records
            if record.getMessage() == message
            and all(value in str(getattr(record, name, "")) for name, value in fields.items())
        ]

    def errors(self) -> list[str]:
        """What went wrong in a way that nobody foresaw."""
        return [
            f"{each.name}: {each.getMessage()}"
            for each in self.records
            if each.levelno >= logging.ERROR and GRPC_LEFTOVER not in each.getMessage()
        ]

    def forgive(self, logger: str) -> None:
        """Forget what a logger said: the test meant it to go wrong there."""
        self.records = [each for each in self.records if not each.name.startswith(logger)]

    def _keep(self, record: logging.LogRecord) -> None:
        self.records.append(record)
        for waiter in self._waiters:
            waiter.set()
