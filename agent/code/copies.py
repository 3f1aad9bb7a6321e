"""Lays a content tree out as a directory of its own, with the inline files that belong into it."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from agent.executions.files import EXECUTABLE, READABLE
from agent.executions.trees import make_directories
from agent.executions.whole_file import write_whole
from muster.domain.data.tree import ContentEntry, ContentKind, ContentTree
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import InlineFile
from muster.transfer.new_file import NEW_FILE, write_hashed
from muster.transfer.objects import ObjectFiles


def lay_out(tree: ContentTree, objects: ObjectFiles, into: Path) -> None:
    """Have a directory with nothing but a copy of the tree, which belongs to the agent.

    What is copied is compared with its name. Raises OSError, or ExecutionError for an object that was damaged; that one
    is fetched anew the next time.
    """
    if into.is_symlink() or into.exists():
        shutil.rmtree(into)
    into.mkdir()
    into.chmod(EXECUTABLE)
    for entry in tree.entries:
        path = into / entry.path
        make_directories(path.parent)
        if entry.is_link:
            path.symlink_to(entry.content)
        else:
            _copy(entry, objects, path)


def add_files(files: Mapping[str, InlineFile], into: Path) -> None:
    """Write inline files by their paths below a directory in which nobody else can write. Raises OSError.

    Links of the tree are followed as long as they do not lead out; raises ExecutionError for those that do.
    """
    root = into.resolve()
    for place, file in files.items():
        path = into / place
        if not path.parent.resolve().is_relative_to(root):
            message = f"files: a link of the code leads {file.path} out of it; name another path"
            raise ExecutionError(FailureKind.INVALID_OPTION, message)
        make_directories(path.parent)
        write_whole(path, file.content, EXECUTABLE if file.executable else READABLE)


def _copy(entry: ContentEntry, objects: ObjectFiles, path: Path) -> None:
    descriptor = os.open(path, NEW_FILE, 0o600)
    try:
        os.fchmod(descriptor, EXECUTABLE if entry.kind is ContentKind.PROGRAM else READABLE)
        found = write_hashed(descriptor, objects.read(entry.content, 0, entry.size))
    finally:
        os.close(descriptor)
    if found != entry.content:
        objects.remove(entry.content)
        message = f"code: what this node had of {entry.path} was damaged; another attempt fetches it anew"
        raise ExecutionError(FailureKind.RUNTIME, message)
