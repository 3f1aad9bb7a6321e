"""Writes the files of an execution that must be there before user code starts."""

from collections.abc import Sequence
from pathlib import Path

from agent.executions.layout import ExecutionDirectory
from agent.executions.trees import make_directories
from agent.executions.whole_file import write_unseen, write_whole
from muster.domain.gangs.plan import Launch
from muster.domain.jobs.job import InlineFile

READABLE = 0o644
"""Config files are readable for every user, since user code may run as any."""
EXECUTABLE = 0o755


def write_config(directory: ExecutionDirectory, launch: Launch) -> None:
    """Write the roster files, and programs; until all of them are there, nothing runs that could read them."""
    for name, content in launch.config_files.items():
        write_unseen(directory.config / name, content, READABLE)
    if launch.programs:
        directory.programs.mkdir(exist_ok=True)
        directory.programs.chmod(EXECUTABLE)
    for name, content in launch.programs.items():
        write_unseen(directory.programs / name, content, EXECUTABLE)


def write_inline(files: Sequence[InlineFile], workdir: Path) -> None:
    """Write the role's own files, with the directories they need; relative paths are below `workdir`."""
    for file in files:
        path = workdir / file.path
        make_directories(path.parent)
        write_whole(path, file.content, EXECUTABLE if file.executable else READABLE)
