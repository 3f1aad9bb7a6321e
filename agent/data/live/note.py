"""What an agent notes of outputs that are stored while user code runs: the end, or the next agent, stores the rest."""

import json
from collections.abc import Container, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from agent.data.left_files import FileState, LeftFiles, ReadBefore
from agent.data.live.place import LIVE_FILES_NOTE
from agent.executions.record import PRIVATE_RECORD
from agent.executions.whole_file import write_whole
from muster.domain.data.outputs import ExecutionOutputs, OutputsStage
from muster.domain.data.tree import ContentEntry, ContentTree, MalformedTreeError, content_tree, read_content_tree


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveNote:
    """Outputs that are stored already."""

    entries: Mapping[str, ContentEntry] = field(default_factory=dict)
    """What is stored, by its path, whether or not it still lies there."""
    states: Mapping[str, FileState] = field(default_factory=dict)
    """How these files were when they were read."""

    @property
    def known(self) -> Mapping[str, ReadBefore]:
        """What need not be read again as long as it is as it was."""
        both = self.entries.keys() & self.states.keys()
        return {path: ReadBefore(entry=self.entries[path], state=self.states[path]) for path in both}

    def with_found(self, found: LeftFiles) -> "LiveNote":
        """The same once what was found is stored, too; what lies at a place now counts, and not what lay there."""
        new = {each.path: each for each in found.tree.entries}
        above = {str(parent) for path in new for parent in PurePosixPath(path).parents}
        old = {path: each for path, each in self.entries.items() if path not in above and not _lies_in(path, new)}
        entries = {**old, **new}
        states = {path: state for path, state in {**self.states, **found.states}.items() if path in entries}
        return LiveNote(entries=entries, states=states)

    def without_digests(self, gone: frozenset[str]) -> "LiveNote":
        """The same without files whose content the depot does not have any more."""
        return replace(self, entries={path: each for path, each in self.entries.items() if each.content not in gone})

    @property
    def tree(self) -> ContentTree:
        """All of it."""
        return content_tree(self.entries.values())

    @property
    def outputs(self) -> ExecutionOutputs | None:
        """What is told of it; None: nothing is stored."""
        return outputs_of(self.tree, OutputsStage.LIVE) if self.entries else None


NOTHING_STORED = LiveNote()
"""No outputs that are stored already."""


def _lies_in(path: str, files: Container[str]) -> bool:
    return any(str(parent) in files for parent in PurePosixPath(path).parents)


def outputs_of(tree: ContentTree, stage: OutputsStage) -> ExecutionOutputs:
    """What is told of outputs that are stored as a tree."""
    files, size = len(tree.entries), sum(each.size for each in tree.entries)
    return ExecutionOutputs(stage=stage, tree=tree.digest, size=len(tree.form), files=files, bytes=size)


def write_live_note(directory: Path, note: LiveNote) -> None:
    """Write it down in an execution's directory. Raises OSError."""
    facts = {"form": note.tree.form.decode(), "states": {path: [*state] for path, state in note.states.items()}}
    write_whole(directory / LIVE_FILES_NOTE, json.dumps(facts).encode(), PRIVATE_RECORD)


def read_live_note(directory: Path) -> LiveNote:
    """What was written down; nothing where there is nothing that this agent can read."""
    with suppress(OSError, ValueError, TypeError, KeyError, MalformedTreeError):
        facts = json.loads((directory / LIVE_FILES_NOTE).read_bytes())
        tree = read_content_tree(facts["form"].encode())
        states = {path: FileState(*state) for path, state in facts["states"].items()}
        return LiveNote(entries={each.path: each for each in tree.entries}, states=states)
    return NOTHING_STORED
