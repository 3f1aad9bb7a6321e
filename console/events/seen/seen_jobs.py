"""Jobs that the console has seen, so that it can tell which of them were deleted, also while it was away; pure."""

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from console.mirror.rows import LABEL_FIELD, MirrorRow
from muster.domain.event import JobEvent, JobEventKind
from muster.domain.ids import JobId
from muster.domain.notifications.happening import EventPlace, Happening, ToldJob


class SeenJob(NamedTuple):
    """What is told of a job once it is gone."""

    job: ToldJob
    attempt: int

    def deleted(self, at: datetime, fleet: str) -> Happening:
        """The event that says so; `fleet` is the id of the fleet."""
        event = JobEvent(
            job=self.job.id, attempt=self.attempt, kind=JobEventKind.DELETED, at=at, text="the job was deleted"
        )
        return Happening(event=event, place=EventPlace(), fleet=fleet, job=self.job)

    @property
    def written(self) -> str:
        """The job as a text, for the disk."""
        told = self.job
        return json.dumps([told.id, told.name, told.project, told.owner, dict(told.labels), self.attempt])

    @classmethod
    def read(cls, text: str) -> "SeenJob":
        """The job of a text that `written` gave."""
        id_, name, project, owner, labels, attempt = json.loads(text)
        return cls(ToldJob(id=JobId(id_), name=name, project=project, owner=owner, labels=labels), attempt)


def seen_job(row: MirrorRow) -> SeenJob:
    """A job of the mirror."""
    fields = row.fields
    labels = {
        name.removeprefix(LABEL_FIELD): str(value) for name, value in fields.items() if name.startswith(LABEL_FIELD)
    }
    job = ToldJob(
        id=JobId(row.key.name),
        name=str(fields["name"]),
        project=str(fields["project"]),
        owner=str(fields["owner"]),
        labels=labels,
    )
    attempt = fields["attempt"]
    return SeenJob(job, int(attempt) if isinstance(attempt, float) and attempt else 1)


class SeenChanges(NamedTuple):
    """How jobs that are there differ from those that were seen."""

    new: Sequence[SeenJob]
    """Jobs that were not there, or are told otherwise now."""
    gone: Sequence[SeenJob]


class SeenJobs:
    """All jobs that were seen."""

    def __init__(self, seen: Mapping[JobId, SeenJob]) -> None:
        self._seen = dict(seen)
        self._rows: dict[str, MirrorRow] = {}
        """The rows that were looked at last: one that is the very same says nothing new."""

    def look(self, rows: Iterable[MirrorRow]) -> SeenChanges:
        """Compare all jobs that are there with those that were seen before."""
        there = {row.key.name: row for row in rows}
        looked_at = [seen_job(row) for name, row in there.items() if self._rows.get(name) is not row]
        new = [each for each in looked_at if self._seen.get(each.job.id) != each]
        gone = [seen for job, seen in self._seen.items() if job not in there]
        self._rows = there
        return SeenChanges(new, gone)

    def note(self, changes: SeenChanges) -> None:
        """Keep that changes are on the disk."""
        self._seen |= {each.job.id: each for each in changes.new}
        for each in changes.gone:
            del self._seen[each.job.id]
