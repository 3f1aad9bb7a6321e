"""Outputs of one job that are an input of another: how a job file names them, and the trees that they are."""

import re
from dataclasses import dataclass

_WORD = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
JOB_SOURCE = rf"(job:[a-z0-9]{{1,63}}|{_WORD})(/(\*|{_WORD}-(0|[1-9][0-9]{{0,4}})))?"
"""The pattern of what an input says of the job that it comes from."""
MOST_INPUT_TREES = 1000
"""Executions whose outputs are one input."""
MOST_ONLY = 32
"""Names with wildcards of one input, or of what is stored of outputs."""

_SOURCE = re.compile(rf"(?P<id>job:)?(?P<job>[a-z0-9-]+)(?P<each>/\*)?(?:/(?P<role>{_WORD})-(?P<index>[0-9]+))?")


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSource:
    """The executions of a job of which an input is what they have left."""

    job: str
    """The id of that job, or the name of which it is the newest that has succeeded."""
    is_id: bool = False
    every: bool = False
    """Whether it is all of them, each in a directory of its own."""
    role: str = ""
    """The role of the one that is meant; empty: the job has one execution alone, or it is all of them."""
    index: int = 0
    """The place of that one in its role."""

    def __str__(self) -> str:
        part = "/*" if self.every else f"/{self.role}-{self.index}" if self.role else ""
        return f"{'job:' * self.is_id}{self.job}{part}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InputTree:
    """What one execution has left, as an input of another job."""

    tree: str
    """SHA-256 of its content tree."""
    size: int
    """Bytes of the canonical form of the tree."""
    below: str = ""
    """The directory of the input in which it lies; empty: the input itself."""


def read_job_source(text: str) -> JobSource | None:
    """What a job file says of the job that an input comes from; None: nothing that can be understood."""
    found = _SOURCE.fullmatch(text) if re.fullmatch(JOB_SOURCE, text) else None
    if found is None:
        return None
    return JobSource(
        job=found["job"],
        is_id=found["id"] is not None,
        every=found["each"] is not None,
        role=found["role"] or "",
        index=int(found["index"] or 0),
    )
