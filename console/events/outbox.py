"""The outbox: deliveries that are to be made, kept on the disk together with how far events have been read."""

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from console.events.failing.streaks import Streak
from muster.domain.errors import MusterError
from muster.domain.ids import JobId
from muster.domain.notifications.happening import EventPlace

MOST_EVENTS_WAITING = 10_000
"""Deliveries of one subscription that wait; of more, the oldest go."""
LOG_KEPT = 500
"""Newest outcomes of each subscription that are kept."""
_TABLES = """
CREATE TABLE IF NOT EXISTS seen (job TEXT PRIMARY KEY, body TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS retained (topic TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS place (one INTEGER PRIMARY KEY CHECK (one = 1), text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS waiting (
  number INTEGER PRIMARY KEY AUTOINCREMENT, subscription TEXT NOT NULL, event TEXT NOT NULL, subject TEXT NOT NULL,
  body BLOB NOT NULL, tries INTEGER NOT NULL DEFAULT 0, due REAL NOT NULL, UNIQUE (subscription, event));
CREATE INDEX IF NOT EXISTS waiting_subject ON waiting (subscription, subject, number);
CREATE TABLE IF NOT EXISTS outcomes (
  number INTEGER PRIMARY KEY AUTOINCREMENT, subscription TEXT NOT NULL, event TEXT NOT NULL, at REAL NOT NULL,
  well INTEGER NOT NULL, told TEXT NOT NULL, status INTEGER NOT NULL DEFAULT 0, took REAL NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS streaks (
  subscription TEXT PRIMARY KEY, failures INTEGER NOT NULL, since REAL NOT NULL, told TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS outcomes_subscription ON outcomes (subscription, number);
"""
_FIRST_DUE = """
SELECT number, subscription, event, body, tries, due FROM waiting AS one WHERE subscription = ? AND NOT EXISTS (
  SELECT 1 FROM waiting AS before WHERE before.subscription = one.subscription AND before.subject = one.subject
  AND before.number < one.number) ORDER BY due, number LIMIT 1
"""
_FAILED = """
INSERT INTO streaks (subscription, failures, since, told) VALUES (?1, 1, ?2, ?3)
ON CONFLICT (subscription) DO UPDATE SET failures = failures + 1, told = ?3
"""
_ADDED = ("status INTEGER NOT NULL DEFAULT 0", "took REAL NOT NULL DEFAULT 0")
"""Columns of outcomes that files of older consoles have not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewDelivery:
    """An event that is to go to a subscription."""

    subscription: str
    event: str
    """The id of the event."""
    subject: str
    """What it is about: of one subject events go in order."""
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """A delivery that waits."""

    number: int
    subscription: str
    event: str
    body: bytes
    tries: int
    """How often it was tried."""
    due: float
    """When it is tried next, in seconds of the wall clock."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryOutcome:
    """How a try has ended."""

    subscription: str
    event: str
    at: float
    """Seconds of the wall clock."""
    well: bool
    told: str
    """What the target has answered, or what went wrong; never a secret."""
    status: int = 0
    """The status of HTTP or of SMTP; 0: none."""
    took: float = 0.0
    """Seconds until the target had answered, or was given up; 0: it was not asked."""


class EventOutbox:
    """Deliveries in a SQLite file; what a method has done is on the disk. Any thread may use it."""

    def __init__(self, file: Path, most: int = MOST_EVENTS_WAITING) -> None:
        """Raises MusterError for a file that is none of its own."""
        self._most = most
        self._lock = threading.Lock()
        try:
            self._database = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
            file.chmod(0o600)  # events name jobs and people
            for pragma in ("journal_mode = WAL", "synchronous = FULL", "busy_timeout = 5000"):
                self._database.execute(f"PRAGMA {pragma}")
            self._database.executescript(_TABLES)
            _add_columns(self._database)
        except (sqlite3.Error, OSError) as error:
            raise MusterError(f"cannot keep deliveries in {file}: {error}") from error

    def place(self) -> EventPlace | None:
        """How far events have been read; None: nobody has begun."""
        with self._changing() as database:
            found = database.execute("SELECT text FROM place").fetchone()
        return None if found is None else EventPlace.parse(found[0])

    def take(self, deliveries: Iterable[NewDelivery], place: EventPlace, now: float) -> int:
        """Keep deliveries, and that events have been read up to a place; how many old ones had to go for them.

        One that is there already stays as it is.
        """
        with self._changing() as database:
            database.execute("INSERT OR REPLACE INTO place (one, text) VALUES (1, ?)", (str(place),))
            return self._put(database, deliveries, now)

    def add(self, deliveries: Iterable[NewDelivery], now: float) -> int:
        """Keep deliveries of events that the console itself has seen; how many old ones had to go for them."""
        with self._changing() as database:
            return self._put(database, deliveries, now)

    def seen(self) -> tuple[str, ...]:
        """The jobs that the console has seen and that were not gone yet, as it has written them."""
        with self._changing() as database:
            return tuple(body for (body,) in database.execute("SELECT body FROM seen").fetchall())

    def see(
        self, jobs: Mapping[JobId, str], gone: Iterable[JobId], deliveries: Iterable[NewDelivery], now: float
    ) -> int:
        """Keep that jobs are there, that others are gone, and the deliveries that tell so; how many old ones went."""
        with self._changing() as database:
            database.executemany("INSERT OR REPLACE INTO seen (job, body) VALUES (?, ?)", jobs.items())
            database.executemany("DELETE FROM seen WHERE job = ?", [(job,) for job in gone])
            return self._put(database, deliveries, now)

    def first_due(self, subscription: str) -> Delivery | None:
        """The delivery of a subscription that is tried next, also if it is not due yet; None: nothing waits."""
        with self._changing() as database:
            found = database.execute(_FIRST_DUE, (subscription,)).fetchone()
        if found is None:
            return None
        number, name, event, body, tries, due = found
        return Delivery(number=number, subscription=name, event=event, body=body, tries=tries, due=due)

    def tried(self, delivery: Delivery, outcome: DeliveryOutcome, again_at: float | None) -> None:
        """Keep how a try has ended; it goes again at a time, or never."""
        with self._changing() as database:
            if again_at is None:
                database.execute("DELETE FROM waiting WHERE number = ?", (delivery.number,))
            else:
                database.execute(
                    "UPDATE waiting SET tries = ?, due = ? WHERE number = ?",
                    (delivery.tries + 1, again_at, delivery.number),
                )
            database.execute(
                "INSERT INTO outcomes (subscription, event, at, well, told, status, took) VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    outcome.subscription,
                    outcome.event,
                    outcome.at,
                    outcome.well,
                    outcome.told,
                    outcome.status,
                    outcome.took,
                ),
            )
            if outcome.well:
                database.execute("DELETE FROM streaks WHERE subscription = ?", (outcome.subscription,))
            else:
                database.execute(_FAILED, (outcome.subscription, outcome.at, outcome.told))
            database.execute(
                "DELETE FROM outcomes WHERE subscription = ?1 AND number <= (SELECT number FROM outcomes WHERE "
                "subscription = ?1 ORDER BY number DESC LIMIT 1 OFFSET ?2)",
                (outcome.subscription, LOG_KEPT),
            )

    def forget_others(self, subscriptions: Sequence[str], *, followed: bool = False) -> None:
        """Drop what waits for subscriptions that are not among these: of those of the file, or of `followed` ones."""
        with self._changing() as database:
            known = ", ".join("?" * len(subscriptions))
            database.execute(
                f"DELETE FROM waiting WHERE (instr(subscription, '/') > 0) = ? AND subscription NOT IN ({known})",  # noqa: S608 - question marks alone
                (followed, *subscriptions),
            )
            database.execute(
                f"DELETE FROM streaks WHERE (instr(subscription, '/') > 0) = ? AND subscription NOT IN ({known})",  # noqa: S608 - question marks alone
                (followed, *subscriptions),
            )

    def waiting(self, subscription: str) -> int:
        """How many deliveries of a subscription wait."""
        with self._changing() as database:
            return int(
                database.execute("SELECT count(*) FROM waiting WHERE subscription = ?", (subscription,)).fetchone()[0]
            )

    def outcomes(self, subscription: str, most: int) -> tuple[DeliveryOutcome, ...]:
        """How the last tries of a subscription have ended, the newest first."""
        with self._changing() as database:
            found = database.execute(
                "SELECT subscription, event, at, well, told, status, took FROM outcomes WHERE subscription = ? "
                "ORDER BY number DESC LIMIT ?",
                (subscription, most),
            ).fetchall()
        return tuple(
            DeliveryOutcome(subscription=name, event=event, at=at, well=bool(well), told=told, status=status, took=took)
            for name, event, at, well, told, status, took in found
        )

    def streaks(self) -> dict[str, Streak]:
        """The tries in a row that have failed, by subscription."""
        with self._changing() as database:
            found = database.execute("SELECT subscription, failures, since, told FROM streaks").fetchall()
        return {name: Streak(failures=failures, since=since, told=told) for name, failures, since, told in found}

    def forget_streak(self, subscription: str) -> None:
        """Forget that tries of a subscription have failed."""
        with self._changing() as database:
            database.execute("DELETE FROM streaks WHERE subscription = ?", (subscription,))

    def retain(self, topic: str) -> None:
        """Keep that a broker is given a state under a topic."""
        with self._changing() as database:
            database.execute("INSERT OR IGNORE INTO retained (topic) VALUES (?)", (topic,))

    def release(self, topic: str) -> None:
        """Keep that a broker has no state under a topic any more."""
        with self._changing() as database:
            database.execute("DELETE FROM retained WHERE topic = ?", (topic,))

    def retained(self) -> tuple[str, ...]:
        """The topics under which a broker may have states."""
        with self._changing() as database:
            return tuple(topic for (topic,) in database.execute("SELECT topic FROM retained").fetchall())

    def close(self) -> None:
        """Let go of the file."""
        with self._lock:
            self._database.close()

    def _put(self, database: sqlite3.Connection, deliveries: Iterable[NewDelivery], now: float) -> int:
        touched = set()
        for each in deliveries:
            touched.add(each.subscription)
            database.execute(
                "INSERT OR IGNORE INTO waiting (subscription, event, subject, body, due) VALUES (?, ?, ?, ?, ?)",
                (each.subscription, each.event, each.subject, each.body, now),
            )
        return sum(self._trim(database, subscription) for subscription in touched)

    def _trim(self, database: sqlite3.Connection, subscription: str) -> int:
        """Drop the oldest deliveries of a subscription beyond the most; how many."""
        return database.execute(
            "DELETE FROM waiting WHERE number IN (SELECT number FROM waiting WHERE subscription = ? "
            "ORDER BY number DESC LIMIT -1 OFFSET ?)",
            (subscription, self._most),
        ).rowcount

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """The database in a transaction of its own."""
        with self._lock:
            try:
                self._database.execute("BEGIN IMMEDIATE")
                try:
                    yield self._database
                except BaseException:
                    self._database.execute("ROLLBACK")
                    raise
                self._database.execute("COMMIT")
            except sqlite3.Error as error:
                raise MusterError(f"cannot keep deliveries: {error}") from error


def _add_columns(database: sqlite3.Connection) -> None:
    """Give the file of an older console the columns that it has not."""
    there = {name for _, name, *_ in database.execute("PRAGMA table_info(outcomes)").fetchall()}
    for column in _ADDED:
        if column.partition(" ")[0] not in there:
            database.execute(f"ALTER TABLE outcomes ADD COLUMN {column}")
