"""What an agent notes of the checkpoints of an execution, for an agent that starts after it."""

import json
from collections.abc import Collection
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from agent.executions.record import PRIVATE_RECORD
from agent.executions.whole_file import write_whole
from muster.domain.data.checkpoint import JobCheckpoint, StoredPart, ToldCheckpoints

CHECKPOINT_NOTE = "checkpoint.json"
"""File in an execution's directory that says what it saves and what of that is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenCheckpoint:
    """One that need not be stored as long as it is as it was."""

    state: str
    tree: str
    number: int = 0
    """The number of the part as which it was stored; 0: it was there before user code began."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointNote:
    """What an execution saves, and what of that is stored."""

    job: str
    rank: int
    settle: timedelta
    done: str
    stall: timedelta
    in_store: bool = False
    """Whether it goes to a store, so that what is too old is removed from there."""
    seen: dict[str, SeenCheckpoint] = field(default_factory=dict)
    """What is stored, or was restored, by its name."""
    told: ToldCheckpoints = field(default_factory=ToldCheckpoints)
    number: int = 0
    """The highest number of a part."""

    def forgetting(self, present: Collection[str]) -> "CheckpointNote":
        """The same without names that user code has removed, as a long job writes under ever new ones."""
        return replace(self, seen={name: seen for name, seen in self.seen.items() if name in present})

    def stored(self, part: StoredPart, state: str) -> "CheckpointNote":
        """The same once another part is stored."""
        seen = {**self.seen, part.name: SeenCheckpoint(state=state, tree=part.tree, number=part.number)}
        return replace(self, seen=seen, told=self.told.stored(part), number=part.number)

    def with_trouble(self, trouble: str) -> "CheckpointNote":
        """The same where something could not be stored."""
        return replace(self, told=replace(self.told, trouble=trouble))


def note_of(job: str, rank: int, checkpoint: JobCheckpoint, stall: timedelta) -> CheckpointNote:
    """The note of an execution that saves and has not begun."""
    return CheckpointNote(
        job=job,
        rank=rank,
        settle=checkpoint.settle,
        done=checkpoint.done,
        stall=stall,
        in_store=bool(checkpoint.to),
    )


def write_note(path: Path, note: CheckpointNote) -> None:
    """Write it down in an execution's directory. Raises OSError."""
    facts = {
        "job": note.job,
        "rank": note.rank,
        "settle": note.settle.total_seconds(),
        "done": note.done,
        "stall": note.stall.total_seconds(),
        "in_store": note.in_store,
        "seen": {name: asdict(each) for name, each in note.seen.items()},
        "parts": [asdict(part) for part in note.told.parts],
        "trouble": note.told.trouble,
        "number": note.number,
    }
    write_whole(path / CHECKPOINT_NOTE, json.dumps(facts).encode(), PRIVATE_RECORD)


def read_note(path: Path) -> CheckpointNote | None:
    """What was written down; None: the execution saves nothing, or nothing that this agent can read."""
    with suppress(OSError, ValueError, TypeError, KeyError, AttributeError):
        facts = json.loads((path / CHECKPOINT_NOTE).read_bytes())
        return CheckpointNote(
            job=facts["job"],
            rank=facts["rank"],
            settle=timedelta(seconds=facts["settle"]),
            done=facts["done"],
            stall=timedelta(seconds=facts["stall"]),
            in_store=facts.get("in_store", False),
            seen={name: SeenCheckpoint(**each) for name, each in facts["seen"].items()},
            told=ToldCheckpoints(parts=tuple(StoredPart(**part) for part in facts["parts"]), trouble=facts["trouble"]),
            number=facts["number"],
        )
    return None
