"""Classes of jobs: what a project is promised, what it borrows, and what nobody else wants."""

from enum import StrEnum


class JobClass(StrEnum):
    """How surely a job keeps what it gets."""

    GUARANTEED = "guaranteed"  #: only within the quota; never evicted
    PREEMPTIBLE = "preemptible"  #: also beyond the quota; may be evicted for those who are promised more
    SPARE = "spare"  #: only what nobody else wants

    @property
    def order(self) -> int:
        """The place of the class in the queue of a project; 0 goes first."""
        return _ORDER[self]


_ORDER = {each: number for number, each in enumerate(JobClass)}
