"""The program `muster`: its commands and global options.

What is heavy (gRPC, Rich, job files) is imported by the commands that need it, and of the commands only the one that is
called, so that it starts soon.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, TypeAlias

import typer
from typer.models import CommandInfo

from muster import __version__
from muster.cli.context import CliContext
from muster.cli.help import Command, Group, Program, command_in
from muster.cli.output.screen import say, say_lines

Add: TypeAlias = Callable[[typer.Typer], None]
"""Adds a command, or several."""


def _print_version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


def options(
    context: typer.Context,
    *,
    coordinator: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT",
            envvar="MUSTER_COORDINATOR",
            help="Coordinator to ask (default: what `muster up` runs here, else that of the last `muster login`).",
        ),
    ] = None,
    version: Annotated[  # noqa: ARG001 - its callback does it
        bool,
        typer.Option("--version", "-V", help="Print the version and exit.", is_eager=True, callback=_print_version),
    ] = False,
) -> None:
    """Keep the global options for the command."""
    context.obj = CliContext(coordinator=coordinator)


def version() -> None:
    """Print the version of this program.

    Examples:
      muster version
      muster -V
    """
    say(__version__)


def help_on(
    context: typer.Context,
    words: Annotated[list[str] | None, typer.Argument(metavar="[COMMAND...]", help="Command to explain.")] = None,
) -> None:
    """Explain this program, or one command of it.

    Examples:
      muster help
      muster help nodes drain
    """
    say_lines(command_in(context.find_root(), words or ()).rstrip() + "\n")


def _add_up(app: typer.Typer) -> None:
    from muster.cli.commands import up

    app.command()(up.up)
    app.command()(up.down)
    app.command()(up.demo)


def _add_submit(app: typer.Typer) -> None:
    from muster.cli.commands import submit

    app.command()(submit.submit)
    app.command()(submit.schema)


def _add_run(app: typer.Typer) -> None:
    from muster.cli.commands import run

    app.command(context_settings={"allow_interspersed_args": False})(run.run)


def _add_jobs(app: typer.Typer) -> None:
    from muster.cli.commands import jobs

    for command in (jobs.jobs, jobs.show, jobs.why):
        app.command()(command)


def _add_ending(app: typer.Typer) -> None:
    from muster.cli.commands import ending

    for command in (ending.wait, ending.stop, ending.delete):
        app.command()(command)


def _add_holding(app: typer.Typer) -> None:
    from muster.cli.commands.queueing import changing, holding

    for command in (holding.hold, holding.unhold, holding.suspend, holding.resume, changing.change):
        app.command()(command)


def _add_windows(app: typer.Typer) -> None:
    from muster.cli.commands.queueing import windows

    app.add_typer(windows.windows, name="windows")


def _add_logs(app: typer.Typer) -> None:
    from muster.cli.commands import logs

    app.command()(logs.logs)


def _add_metrics(app: typer.Typer) -> None:
    from muster.cli.commands.watching import metrics

    app.command()(metrics.metrics)


def _add_top(app: typer.Typer) -> None:
    from muster.cli.commands.watching import top

    app.command()(top.top)


def _add_open(app: typer.Typer) -> None:
    from muster.cli.commands.watching import opening

    app.command("open")(opening.open_console)


def _add_events(app: typer.Typer) -> None:
    from muster.cli.commands import events

    app.command()(events.events)


def _add_inside(app: typer.Typer) -> None:
    from muster.cli.commands.inside import attach, attachments, copy, execute, forward

    app.command("exec")(execute.execute)
    app.command()(execute.shell)
    app.command()(attach.attach)
    app.command()(forward.forward)
    app.command("cp")(copy.copy)
    app.command()(copy.sync)
    app.command()(attachments.attachments)


def _add_data(app: typer.Typer) -> None:
    from muster.cli.commands.data import uploading

    app.command()(uploading.upload)


def _add_outputs(app: typer.Typer) -> None:
    from muster.cli.commands.data import outputs

    app.add_typer(outputs.outputs, name="outputs")


def _add_checkpoints(app: typer.Typer) -> None:
    from muster.cli.commands.data import checkpoints

    app.add_typer(checkpoints.checkpoints, name="checkpoints")


def _add_volumes(app: typer.Typer) -> None:
    from muster.cli.commands.data import volumes

    app.add_typer(volumes.volumes, name="volumes")


def _add_images(app: typer.Typer) -> None:
    from muster.cli.commands.data import images

    app.add_typer(images.images, name="images")


def _add_nodes(app: typer.Typer) -> None:
    from muster.cli.commands.nodes import nodes

    app.add_typer(nodes.nodes)


def _add_trust(app: typer.Typer) -> None:
    from muster.cli.commands import tokens, trust
    from muster.cli.commands.sharing import policies, projects

    app.add_typer(trust.users, name="users")
    app.add_typer(trust.accounts, name="accounts")
    app.add_typer(tokens.tokens, name="tokens")
    projects.projects.command("policy")(policies.policy)
    app.add_typer(projects.projects, name="projects")


def _add_pools(app: typer.Typer) -> None:
    from muster.cli.commands.sharing import pools

    app.add_typer(pools.pools, name="pools")


def _add_presets(app: typer.Typer) -> None:
    from muster.cli.commands.sharing import presets

    app.add_typer(presets.presets, name="presets")


def _add_quotas(app: typer.Typer) -> None:
    from muster.cli.commands.sharing import quotas

    app.add_typer(quotas.departments, name="departments")
    app.add_typer(quotas.quota, name="quota")
    app.command()(quotas.queue)


def _add_usage(app: typer.Typer) -> None:
    from muster.cli.commands.sharing import usage

    app.command()(usage.usage)


def _add_audit(app: typer.Typer) -> None:
    from muster.cli.commands import audit

    app.add_typer(audit.audit, name="audit")


def _add_authority(app: typer.Typer) -> None:
    from muster.cli.commands import authority

    app.add_typer(authority.authority, name="authority")


def _add_secrets(app: typer.Typer) -> None:
    from muster.cli.commands import secrets

    app.add_typer(secrets.secrets, name="secrets")


def _add_notify(app: typer.Typer) -> None:
    from muster.cli.commands import notify

    app.add_typer(notify.notify, name="notify")


def _add_bundles(app: typer.Typer) -> None:
    from muster.cli.commands import bundles

    app.add_typer(bundles.bundles, name="bundles")


def _add_login(app: typer.Typer) -> None:
    from muster.cli.commands import login

    for command in (login.init, login.login, login.logout, login.whoami):
        app.command()(command)


def _add_logins(app: typer.Typer) -> None:
    from muster.cli.commands import login

    app.add_typer(login.logins, name="logins")


def _add_ssh(app: typer.Typer) -> None:
    from muster.cli.commands.inside import ssh

    app.command(context_settings={"allow_interspersed_args": False})(ssh.ssh)
    app.command("ssh-proxy", hidden=True)(ssh.ssh_proxy)
    app.add_typer(ssh.ssh_config, name="ssh-config")


def _add_version(app: typer.Typer) -> None:
    app.command()(version)
    app.command("help")(help_on)


_ABOUT = """Run distributed jobs on machines you own: every worker of a job starts at once, or none does.

Examples:
  muster up
  muster run -N 3 -- hostname
"""

_PARTS: Mapping[Add, tuple[str, ...]] = {
    _add_up: ("up", "down", "demo"),
    _add_open: ("open",),
    _add_submit: ("submit", "schema"),
    _add_run: ("run",),
    _add_jobs: ("jobs", "show", "why"),
    _add_ending: ("wait", "stop", "delete"),
    _add_holding: ("hold", "unhold", "suspend", "resume", "change"),
    _add_logs: ("logs",),
    _add_metrics: ("metrics",),
    _add_top: ("top",),
    _add_events: ("events",),
    _add_inside: ("exec", "shell", "attach", "forward", "cp", "sync", "attachments"),
    _add_ssh: ("ssh", "ssh-proxy", "ssh-config"),
    _add_data: ("upload",),
    _add_outputs: ("outputs",),
    _add_checkpoints: ("checkpoints",),
    _add_volumes: ("volumes",),
    _add_images: ("images",),
    _add_nodes: ("nodes",),
    _add_windows: ("windows",),
    _add_secrets: ("secrets",),
    _add_presets: ("presets",),
    _add_notify: ("notify",),
    _add_trust: ("users", "accounts", "tokens", "projects"),
    _add_pools: ("pools",),
    _add_quotas: ("departments", "quota", "queue"),
    _add_usage: ("usage",),
    _add_audit: ("audit",),
    _add_bundles: ("bundles",),
    _add_authority: ("authority",),
    _add_login: ("init", "login", "logout", "whoami"),
    _add_logins: ("logins",),
    _add_version: ("version", "help"),
}
"""What adds which commands, in the order in which they are listed."""


def program(words: Sequence[str] = ()) -> typer.Typer:
    """All of it; of a command line that begins with a command only this command."""
    called = _called(words)
    if called == "help":
        called = None
    wanted = [add for add, names in _PARTS.items() if called in names]
    app = typer.Typer(
        name="muster",
        cls=Program,
        help=_ABOUT,
        add_completion=not wanted,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(options)
    for add in wanted or _PARTS:
        add(app)
    _explain(app)
    if wanted:
        app.registered_commands = [each for each in app.registered_commands if _name(each) == called]
    return app


def _explain(app: typer.Typer) -> None:
    """Have all commands show their examples."""
    for command in app.registered_commands:
        command.cls = Command
    for group in app.registered_groups:
        inner = group.typer_instance
        if inner is not None:
            if not (isinstance(inner.info.cls, type) and issubclass(inner.info.cls, Group)):
                inner.info.cls = Group
            _explain(inner)


def _name(command: CommandInfo) -> str:
    """What a command is called by: its own name, else that of its function."""
    return str(command.name or getattr(command.callback, "__name__", ""))


def _called(words: Sequence[str]) -> str | None:
    """The command that a command line calls; None where it is not plain to see."""
    match words:
        case ["--coordinator", _, word, *_]:
            return word
        case [option, word, *_] if option.startswith("--coordinator="):
            return word
        case [word, *_]:
            return word
        case _:
            return None
