"""Commands that start a fleet on this machine: up, demo."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.context import answers
from muster.cli.exit_codes import ExitCode
from muster.cli.output.screen import say, screen
from muster.client.endpoint import DEFAULT_ADDRESS, Login, forget_up, home, note_up
from muster.domain.errors import InvalidJobError

if TYPE_CHECKING:
    from muster.cli.local.fleet import LocalFleet
    from muster.domain.jobs.view import JobView

_EXAMPLE = Path("examples", "ring", "job.yaml")
_PACKAGE = Path(__file__).parents[2]
"""The package `muster`; a wheel has the example in it, a checkout beside it."""

Nodes = Annotated[int, typer.Option("--nodes", "-n", min=1, max=64, help="How many nodes to act as.")]


@answers
async def up(
    *,
    nodes: Nodes = 3,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Port 0 takes a free one.")] = DEFAULT_ADDRESS,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", help="State and logs; `local` in MUSTER_HOME (~/.muster) otherwise."),
    ] = None,
    gpu_provider: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER", help="Where GPUs come from: `fake:8xH100` pretends to have eight."),
    ] = None,
    docker: Annotated[
        bool,
        typer.Option("--docker/--no-docker", help="Whether to run containers, where a Docker Engine answers."),
    ] = True,
) -> ExitCode:
    """Start a coordinator and nodes on this machine, until Ctrl-C."""
    from muster.cli.local.fleet import FleetPlan, local_fleet, require_programs  # noqa: PLC0415 - gRPC

    require_programs("muster up")
    own = home(os.environ)
    plan = FleetPlan(
        directory=(directory or own / "local").expanduser().resolve(),
        nodes=nodes,
        listen=listen,
        gpu_provider=gpu_provider,
        docker=docker,
    )
    with _cancelled_by(signal.SIGTERM, signal.SIGHUP):
        try:
            async with local_fleet(plan) as fleet:
                with _noted(own, fleet.login):
                    _tell(fleet)
                    await asyncio.Event().wait()
        except asyncio.CancelledError:
            say("stopped", flush=True)
    return ExitCode.SUCCESS


@answers
async def demo(
    file: Annotated[
        Path | None, typer.Argument(help="Job file (default: examples/ring, which comes with this program).")
    ] = None,
    *,
    nodes: Nodes = 3,
) -> ExitCode:
    """Run an example on three nodes of its own, and clear up."""
    from tempfile import TemporaryDirectory  # noqa: PLC0415 - brings hashlib along, like the next ones gRPC and Rich

    from muster.cli.follow import follow  # noqa: PLC0415
    from muster.cli.job_files import read_job  # noqa: PLC0415
    from muster.cli.local.fleet import FleetPlan, client_of, local_fleet, require_programs  # noqa: PLC0415

    require_programs("muster demo")
    spec = read_job(file or _example(), {})
    with _cancelled_by(signal.SIGTERM, signal.SIGHUP), TemporaryDirectory(prefix="muster-demo-") as directory:
        plan = FleetPlan(directory=Path(directory), nodes=nodes, listen="127.0.0.1:0", docker=False)
        async with local_fleet(plan) as fleet, client_of(fleet.login) as client:
            names = ", ".join(node.name for node in fleet.nodes)
            say(f"a coordinator serves at {fleet.login.address}; nodes: {names}", flush=True)
            return await follow(client, await client.jobs.submit(spec), stops=True, on_start=_tell_roster)


@contextmanager
def _noted(own: Path, login: Login) -> Iterator[None]:
    """Clients of this user find the coordinator and are known to it."""
    note_up(own, login)
    try:
        yield
    finally:
        forget_up(own, login.address)


def _tell(fleet: "LocalFleet") -> None:
    from muster.cli.output.nodes import nodes_table  # noqa: PLC0415 - Rich

    out = screen()
    out.print(nodes_table(fleet.nodes))
    say("")
    say(f"the coordinator serves at {fleet.login.address}; logs: {', '.join(map(str, fleet.logs))}")
    say("try `muster run -N 3 -- hostname` or `muster nodes` in another terminal; Ctrl-C stops all of it", flush=True)


def _tell_roster(job: "JobView") -> None:
    from muster.cli.output.jobs import roster_table  # noqa: PLC0415 - Rich
    from muster.cli.output.tables import shown  # noqa: PLC0415

    out = screen()
    out.print()
    out.print(shown(f"roster of {job.spec.name} ({job.id})", "bold"))
    out.print(roster_table(job.attempts[-1]))
    out.print()


def _example() -> Path:
    """The example that comes with this program."""
    for root in (_PACKAGE, _PACKAGE.parent):
        if (root / _EXAMPLE).exists():
            return root / _EXAMPLE
    raise InvalidJobError(f"{_EXAMPLE} was not installed with this program; name a job file: `muster demo FILE`")


@contextmanager
def _cancelled_by(*signals: signal.Signals) -> Iterator[None]:
    """These signals end the command like Ctrl-C: everything in it is unwound in order."""
    loop, command = asyncio.get_running_loop(), asyncio.current_task()
    assert command is not None
    for each in signals:
        loop.add_signal_handler(each, command.cancel)
    try:
        yield
    finally:
        for each in signals:
            loop.remove_signal_handler(each)
