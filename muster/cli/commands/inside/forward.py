"""The command forward: ports of running executions on this machine."""

import asyncio
import signal
import socket
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.commands.inside.execute import Rank, Wait, until_running
from muster.cli.commands.inside.notebook_servers import FIND, WebPage, page_at
from muster.cli.context import answers, session_of
from muster.cli.exit_codes import ExitCode
from muster.cli.options import JobName
from muster.cli.output.screen import print_dim, say
from muster.domain.attachments.frame import AttachmentInput, AttachmentOpened, AttachmentOutput
from muster.domain.attachments.request import HERE, ConnectionRequest
from muster.domain.errors import ConflictError, InvalidJobError, MusterError, PermissionDeniedError
from muster.domain.jobs.job import Network

if TYPE_CHECKING:
    from muster.client.attachments.attachment import Attachment
    from muster.client.client import Client
    from muster.domain.jobs.view import ExecutionView, JobView

LAST_FORWARDABLE_PORT = 65535
LISTENS_WITHIN = 60.0
"""Seconds for a server that the job has just started, until the browser is opened there."""
LOOKS_EVERY = 0.5
"""Seconds between looks at whether it answers."""
SILENT_LOOKS = 3
"""Looks in a row that it accepts, and ends without a byte, until that is taken for its answer: so may a TLS server."""
QUESTION = b"HEAD / HTTP/1.0\r\n\r\n"
"""What every web server answers."""
REPEAT_AFTER = 60.0
"""Seconds after which the same trouble is told again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForwardSpec:
    """A port to forward, as it is written: `[[ADDRESS:]LOCAL:]REMOTE`."""

    remote: str
    """A number, or the name of a declared port."""
    local: int | None = None
    """None: the same number as there; any that is free where the execution itself is on this machine."""
    address: str = HERE


def forward_spec(text: str) -> ForwardSpec:
    """What `[[ADDRESS:]LOCAL:]REMOTE` means; raises InvalidJobError."""
    before, colon, remote = text.rpartition(":")
    address, inner, local = before.rpartition(":")
    if not remote or (colon and not local.isdecimal()) or (local and int(local) > LAST_FORWARDABLE_PORT):
        raise InvalidJobError(f"{text!r} is no port to forward; write REMOTE, LOCAL:REMOTE or ADDRESS:LOCAL:REMOTE")
    if remote.isdecimal() and not 0 < int(remote) <= LAST_FORWARDABLE_PORT:
        raise InvalidJobError(
            f"{remote} is no port; ports are 1 to {LAST_FORWARDABLE_PORT}, or the name of a declared one"
        )
    host = address.removeprefix("[").removesuffix("]") if inner else HERE
    return ForwardSpec(remote=remote, local=int(local) if local else None, address=host or HERE)


def port_of(spec: ForwardSpec, job: "JobView", execution: "ExecutionView") -> int:
    """The number at which the execution listens; raises InvalidJobError for a name that it has not declared."""
    if spec.remote.isdecimal():
        return int(spec.remote)
    for lease in execution.ports:
        if lease.name == spec.remote:
            return lease.container_port
    known = ", ".join(lease.name for lease in execution.ports) or "none"
    raise InvalidJobError(
        f"rank {execution.rank} of {job.spec.name} has no port named {spec.remote!r}; it has: {known}"
    )


@answers
async def forward(
    context: typer.Context,
    job: JobName,
    ports: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[[[ADDRESS:]LOCAL:]REMOTE...]",
            help="Ports there, by number or declared name; LOCAL 0 takes any port here (default: all declared).",
        ),
    ] = None,
    *,
    rank: Rank = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open the first one in the browser.")] = False,
    wait: Wait = False,
) -> ExitCode:
    """Reach ports of a running execution at ports of this machine.

    It goes on until Ctrl-C or the end of the job, also when the job begins anew after a failure.

    Examples:
      muster forward dev 8888
      muster forward dev jupyter --open
    """
    specs = [forward_spec(text) for text in ports or ()]
    async with session_of(context).client() as client:
        if wait:
            await until_running(client, job, rank)
        view = await client.jobs.get(job)
        execution = _execution(view, rank)
        specs = specs or [ForwardSpec(remote=lease.name) for lease in execution.ports if lease.name != "master"]
        if not specs:
            raise InvalidJobError(f"{view.spec.name} declares no ports; say which one: muster forward {job} 8888")
        async with AsyncExitStack() as stack:
            first = ""
            for spec in specs:
                address = await _forwarded(client, stack, view, execution, spec)
                first = first or address
            port = port_of(specs[0], view, execution)
            opening = partial(_open, client, view, execution.rank, port, first)
            return await _stay(client, view, opening if open_browser else None)


def _execution(view: "JobView", rank: int | None) -> "ExecutionView":
    if view.phase.ended:
        raise ConflictError(f"{view.spec.name} has ended: {view.summary}")
    members = view.attempts[-1].executions if view.attempts else ()
    for each in members:
        if each.rank == rank or (rank is None and each.exit is None):
            return each
    if rank is not None and rank >= view.spec.size:
        raise InvalidJobError(f"{view.spec.name} has ranks 0 … {view.spec.size - 1}")
    raise ConflictError(f"{view.spec.name} is not running: {view.summary}")


async def _forwarded(
    client: "Client", stack: AsyncExitStack, view: "JobView", execution: "ExecutionView", spec: ForwardSpec
) -> str:
    """Listen for one; the address here."""
    port = port_of(spec, view, execution)
    told = _Paced(port, execution.rank)
    host = f"[{spec.address}]" if ":" in spec.address else spec.address
    local = _local_port(spec, port, shared=_shares_ports(view, execution))
    made = await client.attachments.forward(view.id, port, rank=execution.rank, at=f"{host}:{local}", on_trouble=told)
    await stack.enter_async_context(made)
    name = "" if spec.remote.isdecimal() else f" ({spec.remote})"
    say(f"{made.address} → port {port}{name} of rank {execution.rank} of {view.spec.name}", flush=True)
    return made.address


def _local_port(spec: ForwardSpec, port: int, *, shared: bool) -> int:
    """The port to listen at here; raises ConflictError for the one that leads to itself."""
    if not shared:
        return port if spec.local is None else spec.local
    if spec.local == port:
        raise ConflictError(
            f"the job runs on this machine, where {port} is its own port: go there without a forward, "
            f"or take another one here, as in 0:{port}"
        )
    return spec.local or 0


def _shares_ports(view: "JobView", execution: "ExecutionView") -> bool:
    """Whether the ports of an execution are ports of this machine, so that a forward could lead to itself."""
    if execution.address is None or view.spec.network is Network.BRIDGE:
        return False
    kind = socket.AF_INET6 if ":" in execution.address else socket.AF_INET
    with socket.socket(kind) as tried, suppress(OSError):  # an address can be bound to where it is one's own
        tried.bind((execution.address, 0))
        return True
    return False


async def _stay(
    client: "Client", view: "JobView", beside: Callable[[], Coroutine[None, None, None]] | None
) -> ExitCode:
    """Wait for Ctrl-C, or the end of the job, and do this meanwhile."""
    interrupted = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, interrupted.set)
    ending = loop.create_task(client.jobs.wait(view), name="end of the job")
    leaving = loop.create_task(_until(interrupted), name="Ctrl-C")
    tasks = [ending, leaving]
    if beside is not None:
        tasks.append(loop.create_task(beside(), name="beside the forward"))
    try:
        await asyncio.wait((ending, leaving), return_when=asyncio.FIRST_COMPLETED)
        if ending.done():
            ended = ending.result()
            print_dim(f"{ended.spec.name} has ended: {ended.summary}")
            return ExitCode.SUCCESS
        return ExitCode.INTERRUPTED
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _until(event: asyncio.Event) -> None:
    await event.wait()


async def _open(client: "Client", view: "JobView", rank: int, port: int, address: str) -> None:
    """Open the browser as soon as something answers there; at a Jupyter server with its token."""
    import webbrowser

    try:
        if not await _serves(client, view, rank, port):
            print_dim(
                f"nothing answers at port {port} of rank {rank} so far; once something does, open http://{address}"
            )
            return
        url = (await _page(client, view, rank, port)).url(address)
    except MusterError as error:
        print_dim(f"the browser is not opened: {error}")
        return
    if not await asyncio.to_thread(webbrowser.open, url):
        say(f"no browser could be opened here; go to {url}", err=True, flush=True)


async def _serves(client: "Client", view: "JobView", rank: int, port: int) -> bool:
    """Whether a server answers at a port there, within a while: what a job has just started takes some seconds.

    An accepted connection alone says little: Jupyter opens its port for a moment to see whether it is free, long before
    it serves and its token is known.
    """
    silent = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(LISTENS_WITHIN):
            while True:
                async with await client.attachments.open(
                    view.id, ConnectionRequest(port=port), rank=rank
                ) as connection:
                    accepted = isinstance(await connection.receive(), AttachmentOpened)
                    if accepted and await _answers(connection):
                        return True
                silent = silent + 1 if accepted else 0
                if silent == SILENT_LOOKS:
                    return True
                await asyncio.sleep(LOOKS_EVERY)
    return False


async def _answers(connection: "Attachment") -> bool:
    """Whether there comes a byte on a connection before its end."""
    await connection.send(AttachmentInput(data=QUESTION))
    return isinstance(await connection.receive(), AttachmentOutput)


async def _page(client: "Client", view: "JobView", rank: int, port: int) -> WebPage:
    """What is to be opened; without a token where nobody may run a command there, or it has no shell."""
    try:
        done = await client.attachments.run(view.id, FIND, rank=rank)
    except PermissionDeniedError as error:
        print_dim(f"no token of a Jupyter server was looked for: {error}")
        return WebPage()
    return page_at(done.output.decode(errors="replace"), port)


class _Paced:
    """Tells trouble of connections on stderr, the same at most once a minute."""

    def __init__(self, port: int, rank: int) -> None:
        self._where = f"port {port} of rank {rank}"
        self._told: dict[str, float] = {}

    def __call__(self, cause: str) -> None:
        now = asyncio.get_running_loop().time()
        if now - self._told.get(cause, -REPEAT_AFTER) >= REPEAT_AFTER:
            self._told[cause] = now
            say(f"{self._where}: {cause}", err=True, flush=True)
