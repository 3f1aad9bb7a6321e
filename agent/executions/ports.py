"""The ledger of the node's ports: leased to executions, and held by bound sockets until just before user code starts.

A held socket is bound but does not listen, so peers that connect too early are refused, as they would be without it,
and nobody else gets the number, neither by asking for it nor as the local end of a connection.
"""

import errno
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from muster.domain.gangs.roster import PortLease
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import PortRequest

LAST_PORT = 65535


class PortLedger:
    """Leases ports of one address of the node ("": of all its addresses).

    Holding, letting go, freeing and adopting twice is the same as once. Ports that are not asked for by number come
    from `first` to `last`, each in its turn, so that a number is not given out again at once.
    """

    def __init__(self, first: int, last: int, address: str = "") -> None:
        if not 1 <= first <= last <= LAST_PORT:
            raise ValueError(
                f"{first}-{last} is no range of ports; give two numbers from 1 to {LAST_PORT}, smaller first"
            )
        self.warning = overlap(first, last, ephemeral_range())
        """What the operator should know about the range, if anything."""
        self._range = range(first, last + 1)
        self._next = 0
        self._address = address
        self._families = _families(address)
        self._leases: dict[ExecutionId, tuple[PortLease, ...]] = {}
        self._owners: dict[int, ExecutionId] = {}
        self._sockets: dict[ExecutionId, list[socket.socket]] = {}
        self._published: set[ExecutionId] = set()
        """Executions whose ports the container engine has until they are cleared away."""

    @property
    def numbers(self) -> range:
        """What is leased to those who do not ask for a number."""
        return self._range

    def hold(
        self, execution: ExecutionId, requests: Sequence[PortRequest], *, bridge: bool = False
    ) -> tuple[PortLease, ...]:
        """Lease and bind a port for each request, or none at all; raises ExecutionError that names who is in the way.

        With `bridge` a requested number is the container's, and the node's port is always chosen.
        """
        if execution in self._leases:
            return self._leases[execution]
        self._leases[execution] = ()
        if bridge:
            self._published.add(execution)
        try:
            for request in requests:
                self._lease(execution, request, bridge=bridge)
        except ExecutionError:
            self.free(execution)
            raise
        return self._leases[execution]

    def let_go(self, execution: ExecutionId) -> None:
        """Close the sockets, so that user code can bind the ports; the numbers stay leased."""
        _close(self._sockets.pop(execution, []))

    def owner(self, number: int) -> ExecutionId | None:
        """The execution that has a port leased."""
        return self._owners.get(number)

    def vacate(self, execution: ExecutionId) -> None:
        """Nothing of it runs: give back those ports that are not published."""
        if execution not in self._published:
            self.free(execution)

    def free(self, execution: ExecutionId) -> None:
        """Give the ports back."""
        self.let_go(execution)
        self._published.discard(execution)
        for lease in self._leases.pop(execution, ()):
            self._owners.pop(lease.host_port, None)

    def adopt(self, execution: ExecutionId, leases: Sequence[PortLease], *, published: bool = False) -> None:
        """Take over the leases of an execution that was started before the agent was; nothing is bound."""
        self.free(execution)
        if published:
            self._published.add(execution)
        self._leases[execution] = tuple(leases)
        self._owners.update(dict.fromkeys((lease.host_port for lease in leases), execution))

    def _lease(self, execution: ExecutionId, request: PortRequest, *, bridge: bool) -> None:
        if request.port is None or bridge:
            number, sockets = self._bind_any()
        else:
            number, sockets = request.port, self._bind_fixed(request.port)
        inside = request.port if bridge and request.port is not None else number
        lease = PortLease(name=request.name, host_port=number, container_port=inside)
        self._owners[number] = execution
        self._leases[execution] += (lease,)
        self._sockets.setdefault(execution, []).extend(sockets)

    def _bind_any(self) -> tuple[int, list[socket.socket]]:
        """The next free port of the range."""
        for _ in self._range:
            number = self._range[self._next]
            self._next = (self._next + 1) % len(self._range)
            if number in self._owners:
                continue
            try:
                return number, self._bind(number)
            except OSError as problem:
                if problem.errno != errno.EADDRINUSE:
                    raise self._refusal(number, problem) from problem
        leased = sum(number in self._range for number in self._owners)
        raise ExecutionError(
            FailureKind.PORT_TAKEN,
            f"no port from {self._range.start} to {self._range.stop - 1} is free: {leased} are leased to executions, "
            f"{len(self._range) - leased} are taken by other programs; give the agent a wider range",
        )

    def _bind_fixed(self, number: int) -> list[socket.socket]:
        owner = self.owner(number)
        if owner is not None:
            raise ExecutionError(FailureKind.PORT_TAKEN, f"port {number} is taken by execution {owner}")
        try:
            with suppress(OSError):
                return self._bind(number)
            # Closed connections of an earlier job keep a port for a minute, but not from a server that says so.
            return self._bind(number, reuse=True)
        except OSError as problem:
            raise self._refusal(number, problem) from problem

    def _bind(self, number: int, *, reuse: bool = False) -> list[socket.socket]:
        """Sockets that hold a port, one per address family."""
        sockets: list[socket.socket] = []
        try:
            for family, address in self._families:
                sockets.append(_socket(family, reuse=reuse))
                sockets[-1].bind((address, number))
                sockets[-1].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)  # once bound, it holds alone
        except OSError:
            _close(sockets)
            raise
        return sockets

    def _refusal(self, number: int, problem: OSError) -> ExecutionError:
        if problem.errno == errno.EADDRINUSE:
            return ExecutionError(FailureKind.PORT_TAKEN, f"port {number} is taken by {culprit(number)}")
        if problem.errno == errno.EACCES:
            message = f"port {number} is for root only; choose one from 1024 on"
            return ExecutionError(FailureKind.INVALID_OPTION, message)
        if problem.errno == errno.EADDRNOTAVAIL:
            message = f"{self._address} is not an address of this node any more; restart its agent"
            return ExecutionError(FailureKind.RUNTIME, message)
        return ExecutionError(FailureKind.RUNTIME, f"port {number} cannot be held: {problem.strerror}")


def overlap(first: int, last: int, ephemeral: tuple[int, int] | None) -> str | None:
    """Why a range of ports is a bad choice beside the one from which the kernel picks; None if it is not."""
    if ephemeral is None or last < ephemeral[0] or ephemeral[1] < first:
        return None
    return (
        f"ports {first}-{last} overlap those that the kernel gives to outgoing connections ({ephemeral[0]}-"
        f"{ephemeral[1]}, net.ipv4.ip_local_port_range); a port may be lost just before user code binds it"
    )


def ephemeral_range() -> tuple[int, int] | None:
    """First and last port that the kernel picks by itself; None where it does not tell."""
    try:
        first, last = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()
    except OSError:
        return None
    return int(first), int(last)


def culprit(number: int) -> str:
    """The process that listens on a TCP port, in words: `process 4242 (python)`, as far as this user may see."""
    import psutil  # noqa: PLC0415 - a tenth of a second and 1 MB that only a port which is taken is worth

    with suppress(psutil.Error, OSError):
        found = [each for each in psutil.net_connections(kind="tcp") if each.laddr and each.laddr.port == number]
        for pid in (each.pid for each in found if each.pid is not None and not each.raddr):
            return f"process {pid} ({psutil.Process(pid).name()})"
    return "another program"


def _families(address: str) -> tuple[tuple[socket.AddressFamily, str], ...]:
    if address:
        return ((socket.AF_INET6 if ":" in address else socket.AF_INET, address),)
    every = ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::"))  # noqa: S104 (all addresses are what is held)
    return tuple(pair for pair in every if _usable(*pair))


def _usable(family: socket.AddressFamily, address: str) -> bool:
    try:
        with _socket(family) as probe:
            probe.bind((address, 0))
    except OSError:
        return False
    return True


def _socket(family: socket.AddressFamily, *, reuse: bool = False) -> socket.socket:
    made = socket.socket(family, socket.SOCK_STREAM)
    if reuse:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    return made


def _close(sockets: Sequence[socket.socket]) -> None:
    for each in sockets:
        each.close()
