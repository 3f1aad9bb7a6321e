"""Commands for ssh into running executions: ssh, ssh-config, and ssh-proxy, which ssh itself starts."""

import asyncio
import os
import pwd
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeAlias

import typer

from muster.cli.context import CliContext, answers, session_of
from muster.cli.options import JobName, Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines
from muster.client.endpoint import home
from muster.domain.errors import ConflictError, InvalidJobError, MusterError

if TYPE_CHECKING:
    from muster.cli.local.ssh.client_config import SshHostsSettings
    from muster.cli.local.ssh.host_names import SshHost
    from muster.client.attachments.stream import AttachmentStream
    from muster.client.client import Client
    from muster.domain.attachments.request import AttachmentRequest

_RESUMED_FOR = 10
"""Minutes for which a connection is tried again."""

ssh_config = typer.Typer(
    help="""Let ssh, scp, rsync and VS Code know the hosts muster-JOB.

Examples:
  muster ssh-config add
  muster ssh-config remove
""",
    no_args_is_help=True,
)

ConfigFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--file", metavar="FILE", help="File of settings that your ssh reads (default: ~/.ssh/config).", dir_okay=False
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class SshConfigChange:
    """What `muster ssh-config` has done, as it is told to programs."""

    config: str
    """The file with the settings for the hosts of Muster."""
    included_by: str
    """The file of the user."""
    changed: bool
    """Whether the file of the user is another one now."""


@answers
async def ssh(
    context: typer.Context,
    job: JobName,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ARGS]...", help="Options of ssh and a command; with --vscode a directory."),
    ] = None,
    *,
    rank: Annotated[
        int | None, typer.Option(min=0, help="Rank of the execution (default: the lowest that runs).")
    ] = None,
    vscode: Annotated[
        bool, typer.Option("--vscode", help="Open VS Code there; needs `muster ssh-config add` once.")
    ] = False,
) -> None:
    """Run ssh into a running execution of a job.

    Options of this command may stand before or right behind JOB; what follows is for ssh. The exit code is that of
    the command there. It is 255 where none ran to its end.

    Examples:
      muster ssh dev
      muster ssh dev --rank 2 -L 8888:localhost:8888
    """
    from muster.cli.local.ssh.client_config import ssh_command
    from muster.cli.local.ssh.host_names import SshHost, name_of_host
    from muster.cli.local.ssh.words import SshWords, own_words, vscode_command

    wanted = own_words(words or (), SshWords(rank=rank, vscode=vscode))
    host = name_of_host(SshHost(job=job, rank=wanted.rank))
    if wanted.vscode:
        code = _installed("code", "install VS Code and its extension Remote - SSH")
        if not _config_file().exists():
            raise ConflictError("VS Code runs an ssh that knows no muster-JOB yet; run `muster ssh-config add` once")
        _become(vscode_command(code, host, wanted.rest))
    program = _installed("ssh", "install OpenSSH, as with `apt-get install openssh-client`")
    _become(ssh_command(program, _settings(session_of(context)), host, wanted.rest))


@ssh_config.command("add")
@answers
async def add_ssh_config(
    context: typer.Context,
    *,
    file: ConfigFile = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before the file is changed.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Have your ssh know muster-JOB: one Include line in its settings.

    The rest of that file stays as it is. A coordinator that is named with --coordinator or MUSTER_COORDINATOR is
    asked from then on. Without one it is that which commands ask.

    Examples:
      muster ssh-config add
      muster ssh-config add --yes --file ~/.ssh/work
    """
    from muster.cli.local.ssh.client_config import config_text, has_include, include_line, with_include
    from muster.cli.local.ssh.user_config import read_user_config, replace_user_config

    theirs, ours = file or _usual_file(), _config_file()
    line, content = include_line(ours, _user_home()), read_user_config(theirs)
    changed = not has_include(content, line)
    if changed and not yes:
        if not sys.stdin.isatty():
            raise InvalidJobError(f"nobody is there to be asked about one line in {theirs}; say --yes")
        typer.confirm(f"Add the line `{line}` on top of {theirs}?", abort=True, err=True)
    replace_user_config(ours, config_text(_settings(session_of(context))).encode())
    if changed:
        replace_user_config(theirs, with_include(content, line))
    done = SshConfigChange(config=str(ours), included_by=str(theirs), changed=changed)
    _tell(done, f"ssh knows muster-JOB now: {theirs} includes {ours}", output)


@ssh_config.command("remove")
@answers
async def remove_ssh_config(*, file: ConfigFile = None, output: Output = Format.TABLE) -> None:
    """Take muster-JOB out of the settings of your ssh again.

    `muster ssh JOB` goes on without them.

    Examples:
      muster ssh-config remove
      muster ssh-config remove --file ~/.ssh/work
    """
    from muster.cli.local.ssh.client_config import include_line, without_include
    from muster.cli.local.ssh.user_config import read_user_config, replace_user_config

    theirs, ours = file or _usual_file(), _config_file()
    content = read_user_config(theirs)
    rest = without_include(content, include_line(ours, _user_home()))
    if rest != content:
        replace_user_config(theirs, rest)
    ours.unlink(missing_ok=True)
    done = SshConfigChange(config=str(ours), included_by=str(theirs), changed=rest != content)
    _tell(done, f"{theirs} says nothing of muster-JOB", output)


@answers
async def ssh_proxy(
    context: typer.Context,
    host: Annotated[str, typer.Argument(metavar="HOST", help="Host name of an execution, muster-JOB or muster-JOB.2.")],
) -> None:
    """Serve ssh on stdin and stdout; ssh starts this by itself.

    Examples:
      ssh -o 'ProxyCommand=muster ssh-proxy %n' muster-dev
      scp -o 'ProxyCommand=muster ssh-proxy %n' model.pt muster-dev.2:/tmp
    """
    from muster.cli.local.ssh.host_names import host_of_name

    wanted = host_of_name(host)
    with _ending_with_ssh():
        async with session_of(context).client() as client:  # which begins to connect, before the rest is loaded
            await _serve(client, wanted)


async def _serve(client: "Client", wanted: "SshHost") -> None:
    from muster.cli.attaching.following import BreakNotice, NoticeOnce

    try:
        from muster.cli.local.ssh.host_key import host_key
        from muster.cli.local.ssh.pipes import joined_pipes
        from muster.cli.local.ssh.server import serve_ssh
    except ModuleNotFoundError as error:
        if error.name != "asyncssh":
            raise
        raise MusterError("ssh needs the package asyncssh: `pip install 'muster-client[ssh]'`") from error
    notice, on_notice = BreakNotice(_RESUMED_FOR), NoticeOnce()

    async def attach(request: "AttachmentRequest") -> "AttachmentStream":
        return await client.attachments.open(
            wanted.job, request, rank=wanted.rank, on_break=notice, on_notice=on_notice
        )

    def tell(words: str) -> None:
        say(f"muster: {words}", err=True, flush=True)

    async with joined_pipes(sys.stdin.fileno(), sys.stdout.fileno()) as line:
        await serve_ssh(line, host_key(_directory()), attach, tell)


@contextmanager
def _ending_with_ssh() -> Iterator[None]:
    """Close attachments on SIGHUP, by which ssh ends this program, and on SIGTERM; the context ends well then."""
    task = asyncio.current_task()
    assert task is not None
    told: list[bool] = []

    def end() -> None:
        if not told:  # a second one would end what the first has begun
            told.append(True)
            task.cancel()

    for each in (signal.SIGHUP, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(each, end)
    try:
        yield
    except asyncio.CancelledError:
        if not told:
            raise


def _tell(done: SshConfigChange, sentence: str, output: Format) -> None:
    if output.for_people:
        say(sentence)
    else:
        say_lines(text_of(done, output))


def _settings(session: CliContext) -> "SshHostsSettings":
    from muster.cli.local.ssh.client_config import SshHostsSettings, known_hosts_file
    from muster.cli.local.ssh.own_command import own_command

    proxy = (*own_command(sys.argv[0], os.environ, session.coordinator), "ssh-proxy")
    return SshHostsSettings(proxy=proxy, known_hosts=known_hosts_file(_directory()))


def _installed(program: str, remedy: str) -> str:
    found = shutil.which(program)
    if found is None:
        raise ConflictError(f"{program} is not installed here; {remedy}")
    return found


def _become(command: Sequence[str]) -> NoReturn:
    """Run another program in the place of this one."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the other program would, too
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(command[0], list(command))  # noqa: S606 - a program of the user, and no shell


def _directory() -> Path:
    return home(os.environ).absolute() / "ssh"


def _config_file() -> Path:
    return _directory() / "config"


def _user_home() -> Path:
    """The home directory as ssh has it, which does not ask the variable."""
    return Path(pwd.getpwuid(os.getuid()).pw_dir)


def _usual_file() -> Path:
    return _user_home() / ".ssh" / "config"
