"""A slot: names, addresses and a directory that one run of the testbed has to itself.

Slots are taken with a file lock, so that runs can go on side by side, and whoever takes a slot whose owner crashed
first clears away what that one left. `python3 -m tests.e2e.slots` does only that.
"""

import fcntl
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.waiting import until

ROOT = Path(os.environ.get("MUSTER_FLEET_DIR", "/var/tmp/muster-fleet"))
"""The directory of the testbed, on a disk: the nodes' images lie here."""

SLOTS = 32
"""So many runs fit side by side."""

NAMESPACES = Path("/run/netns")
CONTROL_GROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class Slot:
    """What tells one run of the testbed from the others."""

    number: int

    @property
    def directory(self) -> Path:
        """Everything that the run writes is below it."""
        return ROOT / str(self.number)

    @property
    def prefix(self) -> str:
        """How its namespaces and links begin, and the comment on its firewall rules."""
        return f"mfleet{self.number}-"

    @property
    def bridge(self) -> str:
        """The link that joins the nodes."""
        return f"{self.prefix}br"

    def address(self, last: int) -> str:
        """An address of the run's own network; 198.18.0.0/15 is set aside for tests (RFC 2544)."""
        return f"198.18.{self.number}.{last}"

    def clear(self) -> None:
        """Leave nothing of the run behind, whatever state it is in."""
        namespaces = sorted(path.name for path in NAMESPACES.glob(f"{self.prefix}*"))
        _kill(_processes(namespaces))
        for mount in _mounts_below(self.directory):
            _quietly("umount", "--lazy", str(mount))
        for namespace in namespaces:
            _quietly("ip", "netns", "delete", namespace)
        for link in sorted(path.name for path in Path("/sys/class/net").glob(f"{self.prefix}*")):
            _quietly("ip", "link", "delete", link)
        for table, rule in _rules(self.prefix):
            _quietly("iptables", "--wait", "--table", table, "--delete", *rule)
        for group in _control_groups(self.prefix):
            with suppress(OSError):
                group.rmdir()
        shutil.rmtree(self.directory, ignore_errors=True)


@contextmanager
def take_slot() -> Iterator[Slot]:
    """The first free slot, cleared, for as long as the context lasts; cleared again at its end."""
    ROOT.mkdir(parents=True, exist_ok=True)
    for number in range(SLOTS):
        with _locked(number) as slot:
            if slot is not None:
                slot.clear()
                slot.directory.mkdir()
                try:
                    yield slot
                finally:
                    slot.clear()
                return
    raise RuntimeError(f"all {SLOTS} slots below {ROOT} are taken")


def clear_abandoned() -> None:
    """Clear away what crashed runs left; runs that go on are not touched."""
    for path in ROOT.glob("*.lock"):
        with _locked(int(path.stem)) as slot:
            if slot is not None:
                slot.clear()


@contextmanager
def _locked(number: int) -> Iterator[Slot | None]:
    """The slot, if nobody else has it."""
    with (ROOT / f"{number}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield None
        else:
            yield Slot(number)


def _quietly(*argv: str) -> str:
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout


def _processes(namespaces: list[str]) -> frozenset[int]:
    """Processes in the namespaces and their descendants: containers have namespaces of their own."""
    found = {int(pid) for name in namespaces for pid in _quietly("ip", "netns", "pids", name).split()}
    parents = _parents()
    while more := {pid for pid, parent in parents.items() if parent in found and pid not in found}:
        found |= more
    return frozenset(found)


def _parents() -> dict[int, int]:
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    return parents


def _kill(pids: frozenset[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    until(lambda: not any(_alive(pid) for pid in pids), within=60, what=f"the end of {sorted(pids)}")


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def _mounts_below(directory: Path) -> list[Path]:
    """The deepest first."""
    mounts = [Path(line.split()[1]) for line in Path("/proc/self/mounts").read_text().splitlines()]
    return sorted((mount for mount in mounts if mount.is_relative_to(directory)), reverse=True)


def _rules(comment: str) -> Iterator[tuple[str, list[str]]]:
    for table, chain in (("filter", "FORWARD"), ("nat", "POSTROUTING")):
        rules = _quietly("iptables", "--wait", "--table", table, "--list-rules", chain).splitlines()
        yield from [(table, rule.split()[1:]) for rule in rules if comment in rule.split()]


def _control_groups(prefix: str) -> Iterator[Path]:
    """The deepest first."""
    for top in (CONTROL_GROUPS / "systemd", CONTROL_GROUPS / "unified", CONTROL_GROUPS):
        for group in top.glob(f"{prefix}*"):
            yield from sorted((path for path in group.rglob("*") if path.is_dir()), reverse=True)
            yield group


if __name__ == "__main__":
    clear_abandoned()
