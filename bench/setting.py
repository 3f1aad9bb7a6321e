"""What every measurement gets: where to work, how often to repeat, where to put what it finds."""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.figures import Findings
from bench.quiet import quiet_machine
from bench.scratch import PeerMissingError, Scratch


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One run of the benchmarks."""

    scratch: Scratch
    findings: Findings
    peers: frozenset[str]
    """Peers that are wanted."""
    quick: bool
    patience: float
    """Seconds to wait for a quiet machine before each measurement."""
    largest: int
    """Executions of the largest gang."""
    fleets: tuple[int, ...]
    """Numbers of simulated nodes."""

    def repeats(self, full: int, quick: int) -> int:
        """How often something is measured."""
        return quick if self.quick else full

    async def quiet(self, what: str) -> None:
        """Say what comes, once the machine is quiet."""
        print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)
        await quiet_machine(self.findings, self.patience)

    def has(self, peer: str) -> bool:
        """Whether a peer is wanted and there; one that is wanted and cannot be installed is reported."""
        if peer not in self.peers:
            self.findings.remark(f"{peer} was not measured: it was not asked for (--peers)")
            return False
        try:
            self.scratch.need(peer)
        except PeerMissingError as error:
            self.findings.remark(str(error))
            return False
        return True


class Turns:
    """Values that are taken turn after turn, by name; those of the first turn, which warms up, are not kept."""

    def __init__(self, count: int) -> None:
        self.found: dict[str, list[float]] = defaultdict(list)
        self._count = count
        self._warm = False

    def __iter__(self) -> Iterator[int]:
        """The number of the turn: 0 warms up."""
        for turn in range(self._count + 1):
            self._warm = turn > 0
            yield turn

    def keep(self, values: Mapping[str, float]) -> None:
        """What one turn found, or a part of it."""
        if self._warm:
            for name, value in values.items():
                self.found[name].append(value)


def stamps(file: Path) -> list[tuple[int, int, int]]:
    """What bench/programs/stamp wrote: nanoseconds at the start and with all addresses, number of addresses."""
    if not file.exists():
        return []
    lines = (line.split() for line in file.read_text().splitlines())
    return [(int(begun), int(have), int(known)) for _, begun, have, known in lines]
