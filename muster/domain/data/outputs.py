"""What executions leave in their outputs directories, and what becomes of it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any

from muster.domain.data.output_terms import ALL_OUTPUTS, OutputTerms
from muster.domain.data.upload import DepotPass

OUTPUTS_DIRECTORY = "/muster/outputs"
"""Where containers put what they want to have kept."""

MOST_OUTPUTS = 100_000
"""Files that one execution may leave."""

LARGEST_OUTPUTS = 1 << 62
"""Bytes of outputs, which no disk has."""

LEFT_OUT_TOLD = 5
"""Entries that were left out of which the path and the reason are told."""


class OutputsStage(StrEnum):
    """Where the outputs of an execution are."""

    LIVE = "live"  #: user code still runs; what is stored of them so far is in the depot
    STORING = "storing"  #: on their way to the depot
    STORED = "stored"  #: the depot has them
    ON_NODE = "on_node"  #: they could not be stored; the node keeps them
    LOST = "lost"  #: their node went away before they were stored
    UNWANTED = "unwanted"  #: user code did not end as `outputs.on` wants it, so they went with the execution
    EXPIRED = "expired"  #: they were stored, for as long as `outputs.keep` says
    STORING_AGAIN = "storing_again"  #: somebody asked to have them stored again; their job does not wait for that


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionOutputs:
    """The outputs of one execution, which are one content tree."""

    stage: OutputsStage
    tree: str = ""
    """SHA-256 of the content tree of what is stored of them; empty while nothing is."""
    size: int = 0
    """Bytes of the canonical form of the tree."""
    files: int = 0
    bytes: int = 0
    """Bytes of all files."""
    left_out: int = 0
    """Entries that were left out, as they are no files of the job."""
    why: str = ""
    """Why they were not stored, or some of what was left out, each with its reason."""
    at: datetime | None = None
    """When the coordinator heard of it."""
    retries: int = 0
    """How often somebody has asked to have them stored again, as far as this is what came of it."""

    @property
    def on_their_way(self) -> bool:
        """Whether their job is to wait for them."""
        return self.stage is OutputsStage.STORING


STORING_OUTPUTS = ExecutionOutputs(stage=OutputsStage.STORING)
"""Outputs that are on their way; how many they are is not known yet."""

UNWANTED_OUTPUTS = ExecutionOutputs(stage=OutputsStage.UNWANTED)
"""Outputs that nobody has looked at, as nobody wants them."""


RETRIED_STAGES = frozenset({OutputsStage.ON_NODE, OutputsStage.LOST, OutputsStage.STORING_AGAIN})
"""Stages of outputs that can be stored again, or already are; nodes that were lost may come back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankNotRetried:
    """A rank whose outputs cannot be stored again."""

    rank: int
    why: str
    """Why, as a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsRetry:
    """What came of asking for the outputs of an attempt to be stored again."""

    job: str
    job_name: str
    attempt: int
    ranks: tuple[int, ...] = ()
    """Ranks whose nodes store them again, or do so once they are there."""
    refused: tuple[RankNotRetried, ...] = ()
    """Ranks whose outputs are not in the depot and cannot be stored again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputsPass:
    """What a node is told that has outputs of an execution to store."""

    depot: DepotPass | None
    """What opens the depot to them; None: nobody wants them, as user code did not end as their terms say."""
    terms: OutputTerms = ALL_OUTPUTS
    opens: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Values by key of the secret that opens the store to which they go; the depot then takes the list of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankOutputs:
    """The outputs of one rank, and the way to them."""

    rank: int
    role: str
    outputs: ExecutionOutputs
    ticket: str = field(default="", repr=False)
    """What opens the depot for their tree; empty where there is nothing to fetch."""
    store: str = ""
    """The place in a store where they lie, as `s3://…`; the depot has but the list of them. Empty: it has all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobOutputs:
    """The outputs of one attempt of a job."""

    job: str
    job_name: str
    attempt: int
    size: int
    """Executions of the job."""
    depot: str
    """HOST:PORT; an empty host is the one at which the coordinator was reached. Empty: no depot is there."""
    ranks: tuple[RankOutputs, ...] = ()
    """Ranks that have left something."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """One file that is stored."""

    rank: int
    path: str
    size: int
    sha256: str
    stored_at: datetime | None
    place: str
    """Where it lies below the directory into which outputs are fetched."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """What user code says of it, where that was asked for."""
    uri: str = ""
    """Where it lies in a store; empty: the depot has it."""
    fault: str = ""
    """Why it was not read as metadata of another file; empty: it was not meant to be, or nobody asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedOutputs:
    """What came of fetching outputs."""

    files: int
    """Files that are in their places now."""
    bytes: int
    fetched: int
    """How many of the files were not there before."""


def left_out_text(reasons: Iterable[tuple[str, str]]) -> str:
    """Some of what was left out, for people: path and reason."""
    return "; ".join(f"{path}: {reason}" for path, reason in list(reasons)[:LEFT_OUT_TOLD])
