"""The mirror: what the feed has told, as rows, and which of them changed since a viewer looked last."""

from collections.abc import Iterator, Mapping, Sequence

from console.mirror.rows import MirrorLine, MirrorRow, job_row, node_row, project_row, queue_line
from muster.domain.feed import FeedBatch, FeedKey, FeedPart, FeedPlace
from muster.domain.revisions import Revisions

QUEUE_KEY = FeedKey(FeedPart.QUEUE, "")
"""The queue as one thing."""


class Mirror:
    """What the coordinator has told; made by batches alone, so two mirrors that heard the same are the same."""

    def __init__(self) -> None:
        self.place = FeedPlace()
        """How far it has come."""
        self.caught_up = False
        """Whether it has all that the coordinator knew when it was heard last."""
        self.changes: Revisions[FeedKey] = Revisions()
        self.queue: tuple[MirrorLine, ...] = ()
        self._rows: dict[FeedKey, MirrorRow] = {}

    def apply(self, batch: FeedBatch) -> None:
        """Take in what the coordinator has told."""
        if batch.anew:
            self._rows, self.queue, self.changes = {}, (), Revisions()
        revision = batch.place.revision
        for row in _rows_of(batch):
            self._rows[row.key] = row
            self.changes.note(row.key, row.scope, revision)
        for key in batch.gone:
            self._rows.pop(key, None)
            self.changes.note_gone(key, revision)
        if batch.queue is not None:
            self.queue = tuple(map(queue_line, batch.queue))
            self.changes.note(QUEUE_KEY, "", revision)
        self.changes.move_to(revision, batch.complete_from)
        self.place, self.caught_up = batch.place, batch.caught_up

    @property
    def rows(self) -> Mapping[FeedKey, MirrorRow]:
        """All rows."""
        return self._rows

    def of(self, part: FeedPart) -> Sequence[MirrorRow]:
        """The rows of one part, in no order."""
        return [row for key, row in self._rows.items() if key.part is part]


def _rows_of(batch: FeedBatch) -> Iterator[MirrorRow]:
    yield from map(project_row, batch.projects)
    yield from map(node_row, batch.nodes)
    yield from map(job_row, batch.jobs)
