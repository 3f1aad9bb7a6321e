"""The hash chain of the audit log: every entry carries the hash of the one before, so no entry is changed unseen."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from json.encoder import encode_basestring_ascii as _quoted

from muster.domain.errors import MusterError
from muster.domain.fleet.access import AuditAnchor, AuditEntry

_TEXTS = ("who", "what", "target", "origin", "result", "previous", "hash")


class AuditLineError(MusterError):
    """A line that is no entry of an audit log; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainBreak:
    """The first place where an audit log is not as it was written."""

    number: int
    """The entry that does not fit."""
    problem: str


def hash_of(entry: AuditEntry) -> str:
    """The hash that an entry must have."""
    return hash_at(entry, entry.number, entry.previous)


def hash_at(entry: AuditEntry, number: int, previous: str) -> str:
    """The hash of an entry at a place of the log; made without a copy, as every order comes here."""
    return sha256(_form(entry, number, previous).encode()).hexdigest()


def line_of(entry: AuditEntry) -> str:
    """An entry as one line of JSON in ASCII; without `hash` it is what was hashed."""
    form = _form(entry, entry.number, entry.previous)
    at, _, rest = form.partition(",")
    return f'{at},"hash":{_quoted(entry.hash)},{rest}'


def entry_of(line: str) -> AuditEntry:
    """The entry in a line of JSON; raises AuditLineError."""
    try:
        said = json.loads(line)
        texts = {name: said[name] for name in _TEXTS}
        at = datetime.fromisoformat(said["at"]).astimezone(UTC)
        if not all(isinstance(text, str) for text in texts.values()) or type(said["number"]) is not int:
            raise AuditLineError("is no entry of an audit log: a field has the wrong type")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise AuditLineError(f"is no entry of an audit log: {type(error).__name__}: {error}") from None
    return AuditEntry(at=at, number=said["number"], **texts)


class ChainCheck:
    """Goes along an audit log, oldest entry first, and stops at the first entry that does not fit."""

    def __init__(self, anchor: AuditAnchor | None = None, expected: AuditAnchor | None = None) -> None:
        """`anchor`: what the first entry must follow; None: any, as in a file that begins in the middle.

        `expected`: an entry that was noted earlier and must be met.
        """
        self.last = anchor
        self.first: AuditEntry | None = None
        self.count = 0
        self.broken: ChainBreak | None = None
        self._expected = None if expected == anchor else expected

    def take(self, entry: AuditEntry) -> ChainBreak | None:
        """Look at the next entry; None: the chain holds up to it."""
        if self.broken is None and (problem := self._problem(entry)) is not None:
            self.broken = ChainBreak(number=entry.number, problem=problem)
        if self.broken is None:
            self.first = self.first or entry
            self.count += 1
            self.last = AuditAnchor(number=entry.number, hash=entry.hash)
            if self.last == self._expected:
                self._expected = None
        return self.broken

    def end(self) -> ChainBreak | None:
        """Say that there are no more entries; None: the chain holds, and what was expected is in it."""
        if self.broken is None and self._expected is not None:
            self.broken = ChainBreak(number=self._expected.number, problem="the entry with the noted hash is not there")
        return self.broken

    def _problem(self, entry: AuditEntry) -> str | None:
        if hash_of(entry) != entry.hash:
            return "its hash is not that of its content: it was changed"
        last, expected = self.last, self._expected
        if expected is not None and entry.number == expected.number and entry.hash != expected.hash:
            return "it is another entry than the one that was noted: the log was rewritten"
        if last is not None and entry.number != last.number + 1:
            return f"it comes after entry {last.number}: entries between them are missing, or in another order"
        if last is not None and entry.previous != last.hash:
            return f"it does not follow entry {last.number} as that is now: one of them was replaced"
        return None


def _form(entry: AuditEntry, number: int, previous: str) -> str:
    """JSON with sorted names, no spaces, and everything outside ASCII escaped."""
    at = entry.at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
    return (
        f'{{"at":"{at}Z","number":{number},"origin":{_quoted(entry.origin)},"previous":{_quoted(previous)},'
        f'"result":{_quoted(entry.result)},"target":{_quoted(entry.target)},"what":{_quoted(entry.what)},'
        f'"who":{_quoted(entry.who)}}}'
    )
