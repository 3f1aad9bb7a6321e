"""What the commands that reach computers by SSH have in common: how these are reached, looked at, and worked on."""

import sys
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from muster.bootstrap.inspect.checks import Finding, Severity, Situation
from muster.bootstrap.inspect.facts import MachineFacts
from muster.bootstrap.inspect.inspection import Inspected, Inspector, close_all
from muster.bootstrap.installation.delivery import Bundle, fetched, opened, own_cache
from muster.bootstrap.installation.outcome import SUCCESSES, Outcome, Status
from muster.bootstrap.installation.plan import Known, MachinePlan
from muster.bootstrap.installation.registry import ClientRegistry
from muster.bootstrap.installation.work import Candidate, Work, describe, untouched
from muster.bootstrap.inventory import MachineInventory, read_inventory
from muster.bootstrap.request import MachineRequest
from muster.bootstrap.ssh.executor import Executor, Shell
from muster.bootstrap.ssh.target import Target, parse_jumps, parse_target
from muster.bundle.signature import signers_in
from muster.cli.exit_codes import ExitCode
from muster.cli.output.bootstrap import InstallProgress, document_of, outcomes_table, plans
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines, screen
from muster.cli.questions import Questions
from muster.client.client import Client
from muster.domain.errors import InvalidJobError, MusterError, UnknownNameError
from muster.domain.fleet.node import NodeState
from muster.rpc.channel import is_loopback

if TYPE_CHECKING:
    from muster.bootstrap.ssh.connections import SshConnections


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How computers are reached."""

    jump: str | None
    key: Path | None
    accepted: Sequence[str]
    parallel: int

    def __post_init__(self) -> None:
        Questions(self.accepted)  # complains of what is no fingerprint before anybody is asked anything


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What `add` and `upgrade` have in common."""

    client: Client
    way: Way
    bundle: Bundle
    known: Mapping[str, Known]
    agents_port: int
    output: Format

    @classmethod
    async def begin(
        cls, client: Client, way: Way, bundle: Path | None, output: Format, *, signers: Sequence[str]
    ) -> "Run":
        """Ask the coordinator what it knows, and have the bundle, signed by somebody who is believed.

        Believed are the `signers` that a person names, else those that the coordinator names.
        """
        known = await ClientRegistry(client).known()
        believed = signers_in(signers) or await client.bundles.signers()
        if bundle is not None:
            have = await opened(bundle, believed)
        else:
            have = await fetched(client, own_cache(), signers=believed)
        say(_signed_by(have, believed), err=True)
        agents_port = await client.nodes.agents_port()
        return cls(client=client, way=way, bundle=have, known=known, agents_port=agents_port, output=output)

    @property
    def present(self) -> frozenset[str]:
        """Nodes that the coordinator has heard of."""
        return frozenset(name for name, known in self.known.items() if known.view is not None)

    @asynccontextmanager
    async def looked(
        self, wishes: Sequence[MachineRequest], coordinator: str | None
    ) -> AsyncIterator[Sequence[Inspected]]:
        """The computers, looked at; connected until the context ends."""
        async with surveyor_of(self.way, coordinator, needs_root=True, output=self.output) as surveyor:
            looking = replace(surveyor, agents_port=self.agents_port)
            seen = await looking.look(wishes, situation_in(self.known, coordinator, self.bundle))
            try:
                yield seen
            finally:
                await close_all(seen)

    def candidate(self, seen: Inspected, plan: Callable[[Inspected, MachineFacts], MachinePlan]) -> Candidate:
        """A computer with its plan."""
        return Candidate(seen=seen, plan=None if seen.facts is None else plan(seen, seen.facts))

    async def carry_out(
        self,
        candidates: Sequence[Candidate],
        success: Status,
        *,
        yes: bool,
        dry_run: bool,
        careful: bool = False,
    ) -> ExitCode:
        """Show what is planned, ask, do it, and say how it ended."""
        notes = screen(err=True)
        if self.output.for_people:
            notes.print(plans(candidates))
        open_ones = [each for each in candidates if untouched(each) is None]
        if dry_run:
            return self._tell([untouched(each) or describe(each, Status.PLANNED) for each in candidates], dry_run=True)
        if open_ones and not yes:
            _go_ahead(len(open_ones))
        progress = InstallProgress(notes)
        work = Work(
            registry=ClientRegistry(self.client),
            bundle=self.bundle.file,
            version=self.bundle.manifest.version,
            success=success,
            tell=progress.tell,
            stop_at_failure=careful,
        )
        try:
            with progress.shown():
                await work.run(candidates, self.way.parallel)
        finally:
            code = self._tell(work.ended(candidates), dry_run=False)
        return code

    def _tell(self, outcomes: Sequence[Outcome], *, dry_run: bool) -> ExitCode:

        if self.output.for_people:
            screen().print(outcomes_table(outcomes))
            if outcomes and all(outcome.status is Status.UNCHANGED for outcome in outcomes):
                say("unchanged")
        else:
            say_lines(text_of(document_of(outcomes, dry_run=dry_run), self.output))
        return ExitCode.SUCCESS if all(each.status in SUCCESSES for each in outcomes) else ExitCode.JOB_FAILED


@asynccontextmanager
async def surveyor_of(
    way: Way, coordinator: str | None, *, needs_root: bool, output: Format
) -> AsyncIterator[Inspector]:
    """A surveyor of machines; what it shares among connections is closed when the context ends."""
    questions = Questions(way.accepted)
    connections = _connections(questions)
    progress = InstallProgress(screen(err=True))

    async def connect(wish: MachineRequest) -> Executor:
        if connections is None:
            raise MusterError("SSH needs the package paramiko: `pip install 'muster-client[ssh]'`")
        return await connections.connect(wish.target)

    try:
        yield Inspector(
            connect=connect,
            password=questions.password,
            coordinator=coordinator,
            parallel=way.parallel,
            needs_root=needs_root,
            tell=progress.tell if output.for_people else lambda *_: None,
        )
    finally:
        if connections is not None:
            await connections.close()


def _connections(questions: Questions) -> "SshConnections | None":
    """None where paramiko is not installed."""
    try:
        from muster.bootstrap.ssh.connections import SshConnections, SshSettings
    except ImportError:
        return None
    return SshConnections(SshSettings(), confirm=questions.confirm, passphrase=questions.passphrase)


@asynccontextmanager
async def shell_of(surveyor: Inspector, wish: MachineRequest, way: Way) -> AsyncIterator[Shell]:
    """A shell there, until the context ends."""
    shell = Shell(await surveyor.connect(replace(wish, target=reached(wish.target, way))), surveyor.password)
    try:
        await shell.become_root()
        yield shell
    finally:
        await shell.close()


def situation_in(
    known: Mapping[str, Known], coordinator: str | None, bundle: Bundle | None
) -> Callable[[MachineRequest, MachineFacts], Situation]:
    """What computers are judged against."""
    enrolled = frozenset(
        name for name, each in known.items() if each.enrolled is not None and each.enrolled.revoked_at is None
    )
    ready = [each.view for each in known.values() if each.view is not None and each.view.state is NodeState.READY]
    heard = max((view.last_seen_at for view in ready if view.last_seen_at is not None), default=None)
    # Nodes are heard every few seconds, so this is only good for clocks that are far from right.
    ahead = None if heard is None else (heard - datetime.now(UTC)).total_seconds()

    def situation(wish: MachineRequest, _: MachineFacts) -> Situation:
        return Situation(
            wish=wish,
            coordinator=coordinator,
            offer=None if bundle is None else bundle.offer,
            present=frozenset(str(view.name) for view in ready),
            enrolled=enrolled,
            coordinator_clock=ahead,
        )

    return situation


def inventory_of(hosts: Sequence[str], file: Path | None, way: Way) -> MachineInventory:
    """The computers that were named, and those of a file; options outweigh the file."""
    inventory = MachineInventory(wishes=())
    if file is not None:
        try:
            inventory = read_inventory(file.read_text(), str(file))
        except (OSError, UnicodeDecodeError) as error:
            raise InvalidJobError(f"cannot read the inventory {file}: {error}") from error
    named = [MachineRequest(target=parse_target(host)) for host in hosts]
    if not named and not inventory.wishes:
        raise InvalidJobError("say which computers: [USER@]HOST[:PORT], or -f FILE")
    wishes = [replace(wish, target=reached(wish.target, way)) for wish in (*named, *inventory.wishes)]
    return replace(inventory, wishes=tuple(wishes))


def reached(target: Target, way: Way) -> Target:
    """The target by the way that the options say."""
    jumps = parse_jumps(way.jump) if way.jump else target.jumps
    return replace(target, key=way.key or target.key, jumps=jumps)


def way_to(
    name: str, known: Mapping[str, Known], listed: Sequence[MachineRequest], way: Way, user: str | None
) -> MachineRequest:
    """How a node is reached by SSH: as the inventory says, or at its address."""
    node = known.get(name, Known())
    if node.view is None:
        raise UnknownNameError(f"there is no node {name}; `muster nodes` lists them")
    for wish in listed:
        if wish.name == name or (wish.name is None and wish.target.host in {name, node.view.address}):
            return replace(wish, name=name)
    return MachineRequest(target=reached(Target(host=node.view.address, user=user), way), name=name)


def reached_at(said: str | None, asked: str) -> str:
    """Where nodes reach the coordinator."""
    if said is not None:
        target = parse_target(said)
        return said if target.port is not None else f"{said}:7460"
    if is_loopback(asked):
        raise InvalidJobError(f"nodes cannot reach the coordinator at {asked}; say where they can: --reach HOST:PORT")
    return asked


def _signed_by(bundle: Bundle, believed: Collection[str]) -> str:
    """The signer of the bundle, and whether a signature was asked for."""
    name = bundle.file.name
    if believed:
        return f"{name} is signed by {bundle.signer}, which is believed"
    signed = f"{name} is signed by {bundle.signer}" if bundle.signer else f"nobody has signed {name}"
    return f"{signed}; this is not checked, as neither --signer nor the coordinator says who has to (docs/bundle.md)"


def _go_ahead(count: int) -> None:
    if not sys.stdin.isatty():
        raise InvalidJobError("nobody is there to be asked whether to go ahead; say --yes, or --dry-run")
    typer.confirm(f"go ahead with {count}?", abort=True, err=True)


def unreached(problem: str) -> Finding:
    """What is said of a computer that could not be looked at."""
    return Finding(id="ssh", severity=Severity.ERROR, sentence=problem, remedy="`ssh -v` to it says more")
