"""Commands that reach computers by SSH: `nodes add`, `nodes check`, `nodes upgrade`, and the half of `nodes remove`."""

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from muster.cli.context import answers, session_of
from muster.cli.exit_codes import ExitCode
from muster.cli.options import Output, Signers, complete_nodes
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines, screen
from muster.domain.errors import InvalidJobError, MusterError

if TYPE_CHECKING:
    from muster.bootstrap.installation.plan import Known
    from muster.bootstrap.request import MachineRequest, Setting
    from muster.bootstrap.ssh.executor import Executor
    from muster.client.client import Client
    from muster.domain.fleet.node import NodeView

_PATIENCE = 5.0
"""Seconds that the coordinator has to answer where nothing hangs on it."""

Hosts: TypeAlias = Annotated[
    list[str] | None, typer.Argument(metavar="[USER@]HOST[:PORT]...", help="Machines, reached by SSH.")
]
InventoryFile: TypeAlias = Annotated[
    Path | None, typer.Option("--file", "-f", metavar="FILE", help="Inventory file with machines (docs/nodes.md).")
]
Jump: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="[USER@]HOST[:PORT],...", help="Bastions on the way, in order (default: as ~/.ssh/config says)."
    ),
]
Key: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Private key that is tried first (default: those of ~/.ssh/config, ~/.ssh and the SSH agent).",
    ),
]
Accepted: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--accept-host-key",
        metavar="SHA256:...",
        help="Fingerprint of the host key of a server that is not known yet; may be repeated.",
    ),
]
BundleFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--bundle", metavar="FILE", help="Bundle to install from (default: the newest that the coordinator keeps)."
    ),
]
Parallel: TypeAlias = Annotated[
    int, typer.Option(min=1, max=256, metavar="COUNT", help="Machines worked on at the same time.")
]
Reach: TypeAlias = Annotated[
    str | None,
    typer.Option(
        metavar="HOST:PORT",
        help="Address at which nodes reach the coordinator (default: the one that this command asks).",
    ),
]
Yes: TypeAlias = Annotated[
    bool,
    typer.Option("--yes", "-y", help="Do not ask whether to go ahead; unknown host keys are asked about all the same."),
]
DryRun: TypeAlias = Annotated[
    bool, typer.Option("--dry-run", help="Look at the machines and show the plan, without changing anything.")
]


@answers
async def add(
    context: typer.Context,
    hosts: Hosts = None,
    *,
    file: InventoryFile = None,
    jump: Jump = None,
    key: Key = None,
    bundle: BundleFile = None,
    signer: Signers = None,
    pool: Annotated[str | None, typer.Option(help="Pool of the nodes: they get the label pool=POOL.")] = None,
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Label that the nodes get; may be repeated.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Node name, for a single machine (default: its host name).")] = None,
    address: Annotated[
        str | None,
        typer.Option(help="Interface, CIDR or address at which other nodes reach the node (default: as routed)."),
    ] = None,
    ports: Annotated[
        str | None,
        typer.Option(metavar="FIRST-LAST", help="Range of ports that are leased to executions (default: 20000-29999)."),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="Option of the agent: `processes=true`; may be repeated."),
    ] = None,
    reach: Reach = None,
    accept_host_key: Accepted = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    parallel: Parallel = 8,
    output: Output = Format.TABLE,
) -> ExitCode:
    """Make machines nodes, by SSH.

    Each machine is looked at, the plan is shown, and after a question Muster is installed and started. What is as it
    should be stays untouched, so a second run changes nothing. What fails is undone.

    Examples:
      muster nodes add root@node-7 root@node-8 --pool h100
      muster nodes add -f inventory.yaml --dry-run
    """
    from muster.bootstrap.installation.outcome import Status
    from muster.bootstrap.installation.plan import Known, plan_node
    from muster.bootstrap.inventory import parse_label, parse_ports
    from muster.cli.commands.nodes.bootstrap_run import Run, Way, inventory_of, reached_at

    way = Way(jump=jump, key=key, accepted=accept_host_key or (), parallel=parallel)
    inventory = inventory_of(hosts or (), file, way)
    labels = dict(map(parse_label, label or ())) | ({"pool": pool} if pool else {})
    settings = dict(map(_setting, setting or ()))
    wishes = [
        replace(
            wish,
            address=address or wish.address,
            ports=parse_ports(ports) if ports else wish.ports,
            labels={**wish.labels, **labels},
            settings={**wish.settings, **settings},
        )
        for wish in inventory.wishes
    ]
    if name is not None and len(wishes) != 1:
        raise InvalidJobError("--name is for one computer; an inventory gives each its own")
    wishes = [replace(wish, name=name or wish.name) for wish in wishes]
    async with session_of(context).client() as client:
        run = await Run.begin(client, way, bundle, output, signers=signer or ())
        coordinator = reached_at(reach or inventory.coordinator, client.address)
        async with run.looked(wishes, coordinator) as seen:
            candidates = [
                run.candidate(
                    each,
                    lambda seen, facts: plan_node(
                        facts,
                        seen.wish,
                        parcel=run.bundle.parcel,
                        coordinator=coordinator,
                        known=run.known.get(seen.name, Known()),
                        findings=seen.findings,
                    ),
                )
                for each in seen
            ]
            return await run.carry_out(candidates, Status.INSTALLED, yes=yes, dry_run=dry_run)


@answers
async def upgrade(
    context: typer.Context,
    names: Annotated[
        list[str] | None, typer.Argument(metavar="NODE...", help="Names of nodes.", autocompletion=complete_nodes)
    ] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Upgrade all nodes.")] = False,
    file: InventoryFile = None,
    user: Annotated[str | None, typer.Option(help="User to log in as, for nodes that are in no inventory.")] = None,
    jump: Jump = None,
    key: Key = None,
    bundle: BundleFile = None,
    signer: Signers = None,
    accept_host_key: Accepted = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    parallel: Parallel = 1,
    output: Output = Format.TABLE,
) -> ExitCode:
    """Give nodes another version of Muster, while their jobs run on.

    Nodes are upgraded one after the other; the first that fails ends it. Each is reached at the host that the inventory
    has for it, else at its address.

    Examples:
      muster nodes upgrade --all
      muster nodes upgrade node-7 --bundle muster-0.2.0-cp311-x86_64.tar
    """
    from muster.bootstrap.installation.outcome import Status
    from muster.bootstrap.installation.plan import plan_upgrade
    from muster.cli.commands.nodes.bootstrap_run import Run, Way, inventory_of, way_to

    way = Way(jump=jump, key=key, accepted=accept_host_key or (), parallel=parallel)
    if bool(names) == everything:
        raise InvalidJobError("say which nodes, or --all")
    listed = inventory_of((), file, way).wishes if file is not None else ()
    async with session_of(context).client() as client:
        run = await Run.begin(client, way, bundle, output, signers=signer or ())
        wishes = [way_to(name, run.known, listed, way, user) for name in names or sorted(run.present)]
        async with run.looked(wishes, None) as seen:
            candidates = [
                run.candidate(
                    each,
                    lambda seen, facts: plan_upgrade(
                        facts, seen.name, parcel=run.bundle.parcel, findings=seen.findings
                    ),
                )
                for each in seen
            ]
            return await run.carry_out(candidates, Status.UPGRADED, yes=yes, dry_run=dry_run, careful=True)


@answers
async def check(
    context: typer.Context,
    hosts: Annotated[
        list[str] | None,
        typer.Argument(metavar="[USER@]HOST[:PORT]|NODE...", help="Machines reached by SSH, or names of nodes."),
    ] = None,
    *,
    local: Annotated[bool, typer.Option("--local", help="Check this machine, without SSH.")] = False,
    file: InventoryFile = None,
    user: Annotated[str | None, typer.Option(help="User to log in as, for nodes that are given by name.")] = None,
    jump: Jump = None,
    key: Key = None,
    reach: Reach = None,
    accept_host_key: Accepted = None,
    parallel: Parallel = 16,
    output: Output = Format.TABLE,
) -> ExitCode:
    """Check machines: what is wrong with each as a node, and what to do.

    Examples:
      muster nodes check --local
      muster nodes check root@node-7 -f inventory.yaml
    """
    from muster.bootstrap.inspect.checks import Severity, worst
    from muster.bootstrap.inspect.inspection import close_all
    from muster.bootstrap.request import MachineRequest
    from muster.bootstrap.ssh.executor import LocalExecutor
    from muster.bootstrap.ssh.target import Target
    from muster.cli.commands.nodes.bootstrap_run import Way, inventory_of, situation_in, surveyor_of, unreached, way_to

    way = Way(jump=jump, key=key, accepted=accept_host_key or (), parallel=parallel)
    known, coordinator, agents_port = await _asked(context)
    words = [word for word in hosts or () if word not in known]
    wishes = [way_to(word, known, (), way, user) for word in hosts or () if word in known]
    if words or file is not None:
        wishes += inventory_of(words, file, way).wishes
    if local:
        wishes.insert(0, MachineRequest(target=Target(host="localhost")))
    if not wishes:
        raise InvalidJobError("say which computers: [USER@]HOST, the name of a node, -f FILE, or --local")

    async with surveyor_of(way, reach or coordinator, needs_root=False, output=output) as surveyor:

        async def connect(wish: "MachineRequest") -> "Executor":
            return LocalExecutor() if local and wish is wishes[0] else await surveyor.connect(wish)

        looking = replace(surveyor, connect=connect, agents_port=agents_port)
        seen = await looking.look(wishes, situation_in(known, reach or coordinator, None))
        await close_all(seen)
    found = [(str(each.wish.target), each.findings or (unreached(each.problem),)) for each in seen]
    if output.for_people:
        from muster.cli.output.bootstrap import findings_table

        screen().print(findings_table(found))
    else:
        hosts_found = [{"host": host, "findings": findings} for host, findings in found]
        say_lines(text_of({"hosts": hosts_found}, output))
    bad = any(worst(findings) is Severity.ERROR for _, findings in found)
    return ExitCode.JOB_FAILED if bad else ExitCode.SUCCESS


async def remove_by_ssh(
    client: "Client",
    node: str,
    ssh: str,
    *,
    jump: str | None,
    key: Path | None,
    accepted: Sequence[str],
    purge: bool,
    force: bool,
    ask: Callable[["NodeView | None"], None],
) -> str:
    """Take Muster off the computer of a node, then have the coordinator forget the node; what was done.

    `ask` is called once it is sure that this is possible.
    """
    from muster.bootstrap.installation.registry import ClientRegistry, dismiss
    from muster.bootstrap.installation.removal import check_removable, uninstall
    from muster.bootstrap.request import MachineRequest
    from muster.bootstrap.ssh.target import parse_target
    from muster.cli.commands.nodes.bootstrap_run import Way, shell_of, surveyor_of

    way = Way(jump=jump, key=key, accepted=accepted, parallel=1)
    registry = ClientRegistry(client)
    view = await check_removable(registry, node, force=force)
    async with surveyor_of(way, None, needs_root=True, output=Format.TABLE) as surveyor:
        async with shell_of(surveyor, MachineRequest(target=parse_target(ssh)), way) as shell:
            ask(view)
            await check_removable(registry, node, force=force)
            there = await uninstall(shell, node, purge=purge, force=force, tell=lambda doing: surveyor.tell(ssh, doing))
        surveyor.tell(ssh, "waits until the coordinator lets it go")
        await dismiss(registry, node)
    return f"{node} removed; " + (f"uninstalled at {ssh}" if there else f"there was no Muster at {ssh}")


async def _asked(context: typer.Context) -> "tuple[Mapping[str, Known], str | None, int]":
    """What the coordinator knows, where nodes reach it, and the port for agents there.

    Nothing where none answers: looking is possible without.
    """
    from muster.bootstrap.installation.registry import ClientRegistry
    from muster.rpc.channel import is_loopback

    try:
        async with session_of(context).client(timeout=_PATIENCE) as client:
            known, agents_port = await ClientRegistry(client).known(), await client.nodes.agents_port()
    except MusterError as error:
        say(f"the coordinator is not asked: {error}", err=True)
        return {}, None, 0
    return known, None if is_loopback(client.address) else client.address, agents_port


def _setting(text: str) -> "tuple[str, Setting]":
    """`KEY=VALUE`, where the value is one of TOML or else text."""
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InvalidJobError(f"{text!r} is no setting like processes=true")
    try:
        found = tomllib.loads(f"it = {value}")["it"]
    except tomllib.TOMLDecodeError:
        return key, value
    return key, tuple(found) if isinstance(found, list) else found
