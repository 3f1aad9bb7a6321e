"""Small disks of their own for the state of the coordinator and of one agent, which can be filled and emptied."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tests.e2e.chaos.faults import COORDINATOR
from tests.e2e.fleet import Fleet, sh

COORDINATOR_SIZE = 64 << 20
"""Bytes. The coordinator keeps a reserve for its audit log once four times as much as that is free."""
AGENT_SIZE = 1280 << 20
"""Bytes. Containers are only prepared where a gibibyte is free."""

FILLER = "filler"
CHUNKS = (1 << 20, 4096)
"""Bytes that are written at once, and where those do not fit any more."""


class Disk:
    """A file system in memory, mounted where a program has its state."""

    def __init__(self, directory: Path, size: int) -> None:
        self.directory = directory
        directory.mkdir()
        sh("mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "tmpfs", str(directory))

    def fill(self) -> int:
        """Leave no block free; how many bytes that took."""
        taken = 0
        with (self.directory / FILLER).open("ab", buffering=0) as filler:
            for chunk in CHUNKS:
                with suppress(OSError):
                    while True:
                        taken += filler.write(bytes(chunk))
        return taken

    def empty(self) -> None:
        """Give back what `fill` has taken; harmless when repeated."""
        (self.directory / FILLER).unlink(missing_ok=True)

    def close(self) -> None:
        """Take it away, also from under programs that have not ended."""
        self.empty()
        sh("umount", "--lazy", str(self.directory))


@contextmanager
def small_disks(fleet: Fleet, directory: Path) -> Iterator[Mapping[str, Disk]]:
    """Disks by place, for a deployment in this directory that has not been made yet: the coordinator's and a node's."""
    with ExitStack() as stack:
        last = fleet.nodes[-1].name
        disks = {}
        for place, name, size in ((COORDINATOR, "coordinator", COORDINATOR_SIZE), (last, last, AGENT_SIZE)):
            disks[place] = Disk(directory / name, size)
            stack.callback(disks[place].close)
        yield disks
