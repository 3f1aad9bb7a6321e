"""Commands about a fleet on this machine: up, down, demo."""

import asyncio
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from muster.cli.context import answers
from muster.cli.exit_codes import ExitCode
from muster.cli.output.screen import say, screen
from muster.client.endpoint import DEFAULT_ADDRESS, Login, forget_up, home, note_up
from muster.domain.errors import InvalidJobError

if TYPE_CHECKING:
    from muster.cli.local.fleet import FleetPlan, LocalFleet
    from muster.domain.jobs.view import JobView

_EXAMPLE = Path("examples", "ring", "job.yaml")
_PACKAGE = Path(__file__).parents[2]
"""The package `muster`; a wheel has the example in it, a checkout beside it."""

Nodes: TypeAlias = Annotated[
    int, typer.Option("--nodes", "-n", min=1, max=64, help="Number of nodes that this machine acts as.")
]
Directory: TypeAlias = Annotated[
    Path | None,
    typer.Option("--dir", help="Directory of state and logs (default: `local` in MUSTER_HOME, ~/.muster/local)."),
]


@answers
async def up(
    *,
    nodes: Nodes = 3,
    listen: Annotated[
        str,
        typer.Option(metavar="[HOST:]PORT", help="Loopback address for clients; port 0 takes a free one."),
    ] = DEFAULT_ADDRESS,
    directory: Directory = None,
    gpu_provider: Annotated[
        str | None,
        typer.Option(metavar="PROVIDER", help="Source of GPUs: `nvml`, or `fake:8xH100` to pretend to have eight."),
    ] = None,
    cpus: Annotated[
        int | None, typer.Option(min=1, help="CPUs that each node offers (default: its share of this machine).")
    ] = None,
    memory: Annotated[
        str | None, typer.Option(metavar="SIZE", help="Memory that each node offers: `8Gi` (default: its share).")
    ] = None,
    whole_machine: Annotated[
        bool, typer.Option("--whole-machine", help="Let each node offer all CPUs and memory of this machine.")
    ] = False,
    docker: Annotated[
        bool,
        typer.Option("--docker/--no-docker", help="Whether to run containers, where a Docker Engine answers."),
    ] = True,
    console: Annotated[
        bool, typer.Option("--console/--no-console", help="Whether to serve it over HTTP as well.")
    ] = True,
) -> ExitCode:
    """Start a fleet on this machine: a coordinator and nodes.

    It runs until Ctrl-C or `muster down`.

    Examples:
      muster up
      muster up --nodes 2 --gpu-provider fake:8xH100
    """
    from muster.cli.local.fleet import (
        CONSOLE,
        DEPOT,
        RELAY,
        FleetPlan,
        link_of,
        local_fleet,
        parse_listen,
        require_programs,
    )

    require_programs("muster up")
    own = home(os.environ)
    plan = FleetPlan(
        directory=_directory(own, directory),
        nodes=nodes,
        listen=parse_listen(listen),
        gpu_provider=gpu_provider,
        docker=docker,
        cpus=cpus,
        memory=None if memory is None else _size(memory),
        whole_machine=whole_machine,
        companions=(RELAY, DEPOT, *([CONSOLE] if console else [])),
    )
    with _cancelled_by(signal.SIGTERM, signal.SIGHUP):
        try:
            async with local_fleet(plan) as fleet:
                with _noted(own, fleet.login):
                    _tell(fleet, plan, await link_of(fleet.login))
                    await asyncio.Event().wait()
        except asyncio.CancelledError:
            say("stopped", flush=True)
    return ExitCode.SUCCESS


@answers
async def down(*, directory: Directory = None) -> None:
    """Stop what `muster up` runs on this machine.

    Its jobs are stopped; their records and logs are kept.

    Examples:
      muster down
      muster down --dir /tmp/fleet
    """
    from muster.cli.local.claim import end_run

    own = home(os.environ)
    where = _directory(own, directory)
    ended = await asyncio.to_thread(end_run, where)
    if ended is None:
        say(f"nothing runs in {where}")
        return
    forget_up(own, ended.address)
    say(f"stopped what served at {ended.address}" if ended.address else "stopped")


@answers
async def demo(
    file: Annotated[
        Path | None, typer.Argument(help="Job file (default: examples/ring, which comes with this program).")
    ] = None,
    *,
    nodes: Nodes = 3,
) -> int:
    """Run an example job on nodes of its own on this machine, and clear up.

    Examples:
      muster demo
      muster demo --nodes 4 job.yaml
    """
    from tempfile import TemporaryDirectory

    from muster.cli.follow import follow
    from muster.cli.job_files import read_job
    from muster.cli.local.fleet import DEPOT, FleetPlan, client_of, local_fleet, require_programs

    require_programs("muster demo")
    spec = read_job(file or _example(), {})
    with _cancelled_by(signal.SIGTERM, signal.SIGHUP), TemporaryDirectory(prefix="muster-demo-") as directory:
        plan = FleetPlan(
            directory=Path(directory),
            nodes=nodes,
            listen="127.0.0.1:0",
            docker=False,
            companions=(DEPOT,) if any(role.code is not None for role in spec.roles) else (),
        )
        async with local_fleet(plan) as fleet, client_of(fleet.login) as client:
            names = ", ".join(node.name for node in fleet.nodes)
            say(f"a coordinator serves at {fleet.login.address}; nodes: {names}", flush=True)
            job = await client.jobs.submit(await client.data.with_code(spec))
            return await follow(client, job, stops=True, on_start=_tell_roster)


@contextmanager
def _noted(own: Path, login: Login) -> Iterator[None]:
    """Clients of this user find the coordinator and are known to it."""
    note_up(own, login)
    try:
        yield
    finally:
        forget_up(own, login.address)


def _directory(own: Path, said: Path | None) -> Path:
    return (said or own / "local").expanduser().resolve()


def _size(text: str) -> int:
    from muster.jobfile.errors import FieldError
    from muster.jobfile.quantity import parse_memory

    try:
        return parse_memory(text)
    except FieldError as error:
        raise InvalidJobError(f"--memory {error}") from None


def _tell(fleet: "LocalFleet", plan: "FleetPlan", link: str) -> None:
    from muster.cli.output.nodes import nodes_table

    out = screen()
    out.print(nodes_table(fleet.nodes, datetime.now(UTC)))
    say("")
    offered = _offered(plan)
    if offered:
        say(offered)
    say(f"the coordinator serves at {fleet.login.address}; logs: {', '.join(map(str, fleet.logs))}")
    if link:
        say(f"the console serves HTTP at {fleet.login.console} (docs/rest.md); within a minute this signs you in:")
        say(f"  {link}")
    say(
        "try `muster run -N 3 -- hostname` or `muster open` in another terminal; Ctrl-C stops all of it",
        flush=True,
    )


def _offered(plan: "FleetPlan") -> str:
    """How several nodes stand to the one machine; empty where the user has chosen all of it."""
    left_open = " and ".join(["CPUs"] * (plan.cpus is None) + ["memory"] * (plan.memory is None))
    if plan.nodes == 1 or not left_open:
        return ""
    if plan.whole_machine:
        return f"each node offers all {left_open} of this machine, so {plan.nodes} times what there is"
    return f"the nodes share the {left_open} of this machine; `--whole-machine` lets each offer all of it"


def _tell_roster(job: "JobView") -> None:
    from muster.cli.output.jobs import roster_table
    from muster.cli.output.tables import shown

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
    """A context in which these signals end the command like Ctrl-C: everything in it is unwound in order."""
    loop, command = asyncio.get_running_loop(), asyncio.current_task()
    assert command is not None
    for each in signals:
        loop.add_signal_handler(each, command.cancel)
    try:
        yield
    finally:
        for each in signals:
            loop.remove_signal_handler(each)
