"""What the node as a whole uses, from files below /proc that are kept open: a reading takes some tens of microseconds.

Formats: proc(5), https://docs.kernel.org/admin-guide/iostats.html, https://docs.kernel.org/accounting/psi.html.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_CHUNK = 64 * 1024
"""Bytes of one read; `stat` of a node with many CPUs has several of them."""
_SECTOR = 512
"""Bytes of a sector in `diskstats`, whatever the disk has."""
_IDLE_FIELDS = slice(3, 5)
"""The fields of a line of `stat` that count idle time: idle and iowait."""
_COUNTED_FIELDS = 8
"""User, nice, system, idle, iowait, irq, softirq, steal; what guests use is part of user."""
_RESOURCES = ("cpu", "memory", "io")
_WHOLE_DISKS = ("nvme", "sd", "vd", "xvd", "hd", "mmcblk")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCounts:
    """What the kernel has counted since the node started, and what it has just now; None: it does not tell."""

    cpu_busy: float
    """Seconds that CPUs were busy, of all CPUs together."""
    memory_used: int
    """Bytes that are not available to new programs."""
    memory_total: int
    read_bytes: int | None = None
    """Bytes that were read from disks."""
    written_bytes: int | None = None
    received_bytes: int | None = None
    """Bytes that came in over all interfaces but the loopback one."""
    sent_bytes: int | None = None
    stalled: tuple[float | None, float | None, float | None] = (None, None, None)
    """Seconds in which something waited for CPU, memory and disks."""


class HostCounters:
    """Reads the counts of the node; blocks for as long as /proc takes, which is on no disk."""

    def __init__(self, proc: Path = Path("/proc"), ticks: int = 0) -> None:
        """`ticks` of the kernel are a second (default: as the system says)."""
        self._proc = proc
        self._ticks = ticks or os.sysconf("SC_CLK_TCK")
        self._open: dict[str, int] = {}

    def read(self) -> HostCounts:
        """The counts now; raises OSError where /proc does not have what every kernel has."""
        total, available = _memory(self._text("meminfo"))
        read, written = _disks(self._text("diskstats")) if self._has("diskstats") else (None, None)
        received, sent = _networks(self._text("net/dev")) if self._has("net/dev") else (None, None)
        cpu, memory, io = (self._stalled(name) for name in _RESOURCES)
        return HostCounts(
            cpu_busy=_busy_ticks(self._text("stat")) / self._ticks,
            memory_used=total - available,
            memory_total=total,
            read_bytes=read,
            written_bytes=written,
            received_bytes=received,
            sent_bytes=sent,
            stalled=(cpu, memory, io),
        )

    def close(self) -> None:
        """Let go of the files."""
        while self._open:
            os.close(self._open.popitem()[1])

    def _stalled(self, resource: str) -> float | None:
        with suppress(OSError):  # the kernel was built, or started, without it
            return _stall_seconds(self._text(f"pressure/{resource}"))
        return None

    def _has(self, name: str) -> bool:
        return name in self._open or (self._proc / name).exists()

    def _text(self, name: str) -> str:
        fd = self._open.get(name)
        if fd is None:
            fd = self._open[name] = os.open(self._proc / name, os.O_RDONLY | os.O_CLOEXEC)
        return b"".join(_chunks(fd)).decode(errors="replace")


def _chunks(fd: int) -> Iterator[bytes]:
    offset = 0
    while chunk := os.pread(fd, _CHUNK, offset):
        yield chunk
        offset += len(chunk)


def _busy_ticks(stat: str) -> int:
    """Ticks that all CPUs together were busy, from `stat`."""
    counted = [int(field) for field in stat.partition("\n")[0].split()[1 : 1 + _COUNTED_FIELDS]]
    return sum(counted) - sum(counted[_IDLE_FIELDS])


def _memory(meminfo: str) -> tuple[int, int]:
    """Bytes of memory in all, and those that are available, from `meminfo`."""
    facts = {name: int(rest.split()[0]) for name, _, rest in (line.partition(":") for line in meminfo.splitlines())}
    return facts["MemTotal"] * 1024, facts["MemAvailable"] * 1024


def _disks(diskstats: str) -> tuple[int, int]:
    """Bytes read from disks and written to them, from `diskstats`; their partitions count once."""
    read = written = 0
    disks: list[str] = []
    for line in diskstats.splitlines():
        fields = line.split()
        name = fields[2]
        if name.startswith(_WHOLE_DISKS) and not any(_is_part(name, disk) for disk in disks):
            disks.append(name)
            read += int(fields[5]) * _SECTOR
            written += int(fields[9]) * _SECTOR
    return read, written


def _is_part(name: str, disk: str) -> bool:
    """Whether a device is a partition of a disk: `sda1` of `sda`, `nvme0n1p2` of `nvme0n1`."""
    rest = name.removeprefix(disk)
    return rest != name and rest.removeprefix("p").isdigit() and (rest[0] == "p" or not disk[-1].isdigit())


def _networks(dev: str) -> tuple[int, int]:
    """Bytes received and sent, from `net/dev`."""
    received = sent = 0
    for line in dev.splitlines()[2:]:
        name, _, rest = line.partition(":")
        if name.strip() != "lo":
            fields = rest.split()
            received += int(fields[0])
            sent += int(fields[8])
    return received, sent


def _stall_seconds(pressure: str) -> float:
    """Seconds in which some task waited, from a file below `pressure`."""
    some = pressure.partition("\n")[0]
    return int(some.rpartition("total=")[2]) / 1_000_000
