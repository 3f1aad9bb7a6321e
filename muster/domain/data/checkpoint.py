"""Checkpoints of jobs: what user code saves while it runs, and what the next attempt finds."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from muster.domain.data.upload import DepotPass

CHECKPOINT_DIRECTORY = "/muster/checkpoint"
"""Where containers save checkpoints whose job names no other directory."""
CHECKPOINT_DIRECTORY_VARIABLE = "MUSTER_CHECKPOINT_DIR"
"""The variable that tells user code where it saves checkpoints."""
CHECKPOINT_VARIABLE = "MUSTER_CHECKPOINT"
"""The variable that names the checkpoint from which an attempt goes on; it is empty where there is none."""
FINISHED_MARK = ".finished"
"""The end of the name of the file that says that a checkpoint is whole; it begins with a dot and its name."""
UNFINISHED = ".tmp"
"""The end of names that are no checkpoints yet."""

DEFAULT_SETTLE = timedelta(seconds=60)
"""How long a checkpoint must not have changed where nothing says that it is whole."""
DEFAULT_CHECKPOINTS_KEPT = 2
"""Newest whole checkpoints of a job that stay where it does not say how many."""
MOST_CHECKPOINTS_KEPT = 100
"""Newest whole checkpoints of a job that may stay."""
MOST_PINNED = 100
"""Checkpoints of one job that stay because somebody wants it."""
LONGEST_CHECKPOINT_NAME = 200
"""Bytes of the name of a checkpoint."""
PARTS_TOLD = 8
"""Newest parts of an execution that its agent tells; the coordinator has heard of those before."""
TREES_RESTORED = 2
"""Trees at most that make up what one execution finds of a checkpoint."""
MOST_PARTS = 1 << 40
"""Parts that one execution may store in its life."""
INCOMPLETE_KEPT = 8
"""Newest checkpoints of a job that stay although not all ranks have stored their part."""
BAD_WITHIN = timedelta(minutes=10)
"""How long an attempt may run before its end says nothing about the checkpoint that it began with."""

MOST_PART_FILES = 1000
"""Files of one part that goes to a store: all of them are listed when it is restored."""
MOST_EARLIER = 100
"""Earlier attempts whose places in a store are looked through for parts that have gone."""

_PART_DIGITS = 16


class CheckpointRanks(StrEnum):
    """Ranks whose part a whole checkpoint needs."""

    ALL = "all"  #: that of each execution of the role
    RANK0 = "rank0"  #: that of the role's first execution, which all others get as well


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCheckpoint:
    """What the executions of a role save, and how much of it is kept."""

    path: str | None = None
    """The directory in which a container saves it; None: `CHECKPOINT_DIRECTORY`."""
    ranks: CheckpointRanks = CheckpointRanks.ALL
    done: str = ""
    """A name with wildcards; a checkpoint that has such a file is whole. Empty: none says so."""
    settle: timedelta = DEFAULT_SETTLE
    """How long one must not have changed that nothing else says is whole."""
    keep: int = DEFAULT_CHECKPOINTS_KEPT
    """Newest whole ones that stay."""
    to: str = ""
    """The place in a store below which files go, as `s3://BUCKET/PREFIX`; empty: they go to the depot."""
    secret: str = ""
    """The secret that opens that store."""

    @property
    def target(self) -> str:
        """The directory in which a container saves it."""
        return self.path or CHECKPOINT_DIRECTORY


class CheckpointOrder(StrEnum):
    """What people may have done with a checkpoint."""

    PIN = "pin"  #: it stays until somebody unpins it
    UNPIN = "unpin"  #: it stays no longer than others do
    REMOVE = "remove"  #: it goes


class CheckpointId(NamedTuple):
    """Names a checkpoint within its job."""

    attempt: int
    name: str

    def __str__(self) -> str:
        return f"{self.name} of attempt {self.attempt}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPlace:
    """Where the parts of one rank in one attempt lie in a store, and what is there of earlier ones."""

    to: str
    """The place, as `s3://BUCKET/PREFIX`, below which each part has a place of its own."""
    secret: str
    """The secret that opens the store."""
    opens: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The values of that secret by key."""
    earlier: tuple[str, ...] = ()
    """The places of the same rank in earlier attempts."""
    kept: tuple[str, ...] = ()
    """Trees of the parts of this rank that stay, in all of these places."""
    told: int = 0
    """The highest number of a part of this attempt that the coordinator had heard of when it said what stays."""

    def of(self, tree: str) -> str:
        """Where the files of a part lie: what is stored under its name again lies beside it."""
        return f"{self.to}/{part_directory(tree)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPass:
    """What a node is told that stores parts of checkpoints, or restores one."""

    depot: DepotPass
    """What opens the depot: to the files of a part, or to the list of them where they lie in a store."""
    place: CheckpointPlace | None = None
    """The place in a store; None: the depot has the files as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPart:
    """The part of one execution in a checkpoint, which the depot has, or a store."""

    name: str
    """The checkpoint."""
    number: int
    """Counts up over all that the execution stores, from 1; a part that is stored again gets another one."""
    tree: str
    """SHA-256 of its content tree."""
    size: int
    """Bytes of the canonical form of the tree."""
    files: int
    bytes: int
    """Bytes of all files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToldCheckpoints:
    """What an agent tells of the checkpoints of one execution."""

    parts: tuple[StoredPart, ...] = ()
    """The newest that are stored, by their numbers."""
    storing: bool = False
    """Whether user code has ended and others may follow, so that the next attempt waits."""
    trouble: str = ""
    """Why the newest one cannot be stored, as a sentence; empty: nothing is wrong."""

    def stored(self, part: StoredPart) -> "ToldCheckpoints":
        """The same once another part is stored."""
        return replace(self, parts=(*self.parts, part)[-PARTS_TOLD:], trouble="")


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedTree:
    """A content tree in the depot."""

    tree: str
    """SHA-256 of the tree."""
    size: int
    """Bytes of its canonical form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointToRestore:
    """What an execution finds before its user code starts."""

    attempt: int
    """The attempt that has saved it."""
    name: str
    trees: tuple[NamedTree, ...]
    """The part of the execution, and that of its role's first one: what is in the former wins."""

    @property
    def of_first(self) -> NamedTree:
        """The part of the role's first execution, which all executions of the role find."""
        return self.trees[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointPartView:
    """The part of one rank as people see it."""

    rank: int
    files: int
    bytes: int
    tree: str
    """SHA-256 of its content tree; empty: the rank has written it anew, and there is nothing to fetch."""
    size: int
    """Bytes of the canonical form of the tree."""
    ticket: str = field(default="", repr=False)
    """What opens the depot for the tree; empty where there is nothing to fetch."""
    store: str = ""
    """The place in a store where its files lie; the depot has but the list of them. Empty: it has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointView:
    """One checkpoint of a job as people see it."""

    attempt: int
    name: str
    at: datetime
    """When its last part was stored."""
    files: int
    bytes: int
    parts: int
    """How many ranks have stored theirs."""
    needed: int
    """How many must have."""
    lacking: tuple[int, ...] = ()
    """Ranks without a part, of very many the first ones."""
    spoiled: tuple[int, ...] = ()
    """Ranks that wrote their part anew, of very many the first ones; it is never whole."""
    pinned: bool = False
    bad: bool = False
    """Whether attempts that began with it failed at once, so that none begins with it any more."""
    restored: bool = False
    """Whether the newest attempt began with it."""

    @property
    def id(self) -> CheckpointId:
        """The name within the job."""
        return CheckpointId(self.attempt, self.name)

    @property
    def whole(self) -> bool:
        """Whether every rank that must have a part has one, so that an attempt can begin with it."""
        return self.parts == self.needed and not self.spoiled


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointTrouble:
    """Why a rank of the newest attempt cannot store its newest checkpoint."""

    rank: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobCheckpoints:
    """What a job has saved."""

    job: str
    job_name: str
    checkpoints: tuple[CheckpointView, ...] = ()
    """The newest first: of later attempts before earlier ones, and of one attempt those that were stored last."""
    troubles: tuple[CheckpointTrouble, ...] = ()
    """The first of those whose newest one cannot be stored, by rank."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointParts:
    """The parts of one checkpoint, and the way to them."""

    job: str
    job_name: str
    checkpoint: CheckpointView
    depot: str
    """HOST:PORT; an empty host is the one at which the coordinator was reached. Empty: no depot is there."""
    parts: tuple[CheckpointPartView, ...] = ()
    """The parts in the order of their ranks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedCheckpoint:
    """What came of fetching a checkpoint."""

    checkpoint: CheckpointView
    files: int
    """Files that are in their places now."""
    bytes: int
    fetched: int
    """How many of the files were not there before."""


def part_directory(tree: str) -> str:
    """The directory of a part in a store, by its content tree."""
    return tree[:_PART_DIGITS]


def is_checkpoint_name(name: str) -> bool:
    """Whether what lies directly below the directory of checkpoints can be one by its name."""
    if not name.isprintable() or name.startswith(".") or name.endswith(UNFINISHED) or "/" in name:
        return False
    return 0 < len(name.encode("utf-8", "surrogatepass")) <= LONGEST_CHECKPOINT_NAME
