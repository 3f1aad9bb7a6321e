"""The checkpoints of each job: which ranks have stored their part, and which of them are whole."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from coordinator.core.checkpoint_part import CheckpointPart
from coordinator.core.records import Job
from muster.domain.data.checkpoint import CheckpointId, CheckpointRanks
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec

LACKING_TOLD = 64
"""Ranks without a part that one answer names."""


@dataclass(slots=True)
class SavedCheckpoint:
    """The parts of one checkpoint."""

    id: CheckpointId
    needed: int
    """How many ranks must have one."""
    parts: dict[int, CheckpointPart] = field(default_factory=dict)
    """What there is, by rank."""
    spoiled: set[int] = field(default_factory=set)
    """Ranks that wrote theirs anew, where others have parts as well."""

    def add(self, part: CheckpointPart) -> None:
        """Have a part in it, in place of the one of its rank."""
        self.parts[part.rank] = part
        if not part.tree:
            self.spoiled.add(part.rank)

    def drop(self, rank: int) -> None:
        """Do without the part of a rank."""
        del self.parts[rank]
        self.spoiled.discard(rank)

    @property
    def whole(self) -> bool:
        """Whether each rank that must have a part has one, as it first told it."""
        return not self.spoiled and len(self.parts) == self.needed

    @property
    def place(self) -> tuple[int, int]:
        """Where it stands among the whole ones of its job: the larger, the newer.

        Later attempts come after earlier ones, and later parts of its first rank after earlier ones. No clock is asked,
        as it may have been set meanwhile.
        """
        return (self.id.attempt, self.parts[min(self.parts)].number)

    def came_before(self, other: "SavedCheckpoint") -> bool:
        """Whether a whole one has overtaken it: some rank of the same attempt has stored its part of that one later."""
        if self.id.attempt != other.id.attempt:
            return self.id.attempt < other.id.attempt
        return any(rank in other.parts and part.number < other.parts[rank].number for rank, part in self.parts.items())


class SavedCheckpoints:
    """An index over parts of checkpoints."""

    def __init__(self, jobs: Mapping[JobId, Job]) -> None:
        self._jobs = jobs
        self._of_jobs: dict[JobId, dict[CheckpointId, SavedCheckpoint]] = {}

    def of(self, job: JobId) -> Collection[SavedCheckpoint]:
        """All checkpoints of a job, whole or not."""
        return self._of_jobs.get(job, {}).values()

    def get(self, job: JobId, checkpoint: CheckpointId) -> SavedCheckpoint | None:
        """One of them; None: nothing of it is there."""
        return self._of_jobs.get(job, {}).get(checkpoint)

    def whole(self, job: JobId) -> list[SavedCheckpoint]:
        """Whole ones of a job, the newest first."""
        return sorted((each for each in self.of(job) if each.whole), key=lambda each: each.place, reverse=True)

    def good(self, job: JobId) -> list[SavedCheckpoint]:
        """Whole ones with which an attempt may begin, the newest first."""
        bad = self._jobs[job].checkpoints.bad
        return [each for each in self.whole(job) if each.id not in bad]

    def lacking(self, job: JobId, saved: SavedCheckpoint) -> tuple[int, ...]:
        """Ranks that must have a part and have none; of very many the first ones."""
        lacking = (rank for rank in savers(self._jobs[job].spec) if rank not in saved.parts)
        return tuple(rank for rank, _ in zip(lacking, range(LACKING_TOLD), strict=False))

    def changed(self, before: CheckpointPart | None, after: CheckpointPart | None) -> None:
        """Hear of a part that is new, other than before, or forgotten."""
        if before is not None:
            self._drop(before)
        if after is not None:
            of_job = self._of_jobs.setdefault(after.job, {})
            needed = len(savers(self._jobs[after.job].spec))
            of_job.setdefault(after.id, SavedCheckpoint(after.id, needed)).add(after)

    def _drop(self, part: CheckpointPart) -> None:
        of_job = self._of_jobs[part.job]
        saved = of_job[part.id]
        saved.drop(part.rank)
        if not saved.parts:
            del of_job[part.id]
        if not of_job:
            del self._of_jobs[part.job]


class Savers(Collection[int]):
    """The ranks that must have a part in each checkpoint of a job."""

    def __init__(self, ranges: tuple[range, ...]) -> None:
        self._ranges = ranges

    def __len__(self) -> int:
        return sum(map(len, self._ranges))

    def __iter__(self) -> Iterator[int]:
        for each in self._ranges:
            yield from each

    def __contains__(self, rank: object) -> bool:
        return any(rank in each for each in self._ranges)


def savers(spec: JobSpec) -> Savers:
    """The ranks whose part a whole checkpoint of a job needs."""
    ranges = (
        ranks[:1] if role.checkpoint.ranks is CheckpointRanks.RANK0 else ranks
        for role, ranks in spec.ranks_by_role()
        if role.checkpoint is not None
    )
    return Savers(tuple(ranges))


def first_of_role(spec: JobSpec, rank: int) -> int:
    """The first rank of the role to which a rank belongs."""
    return next(ranks.start for _, ranks in spec.ranks_by_role() if rank in ranks)
