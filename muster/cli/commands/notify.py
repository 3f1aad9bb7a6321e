"""Commands for subscriptions: who is told of what happens. No key is taken from the command line."""

import base64
import secrets as random_secrets
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import print_dim, say, say_lines, screen
from muster.domain.errors import ConflictError, InvalidJobError
from muster.domain.notifications.event_types import EventSeverity
from muster.domain.notifications.standard_webhook import SECRET_PREFIX
from muster.domain.notifications.subscription import DeliveryTry, Subscription, SubscriptionTarget

notify = typer.Typer(
    help="""Say who is told of what happens: webhooks, chats and mail.

Examples:
  muster notify
  muster notify add me --mail ada@example.com --mine
""",
    no_args_is_help=True,
)

TEST_TIMEOUT = 20.0
"""Seconds for a test: a console waits ten for the target."""
_KEY_BYTES = 32
_LONGEST_KEY_FILE = 4_096

ProjectOf: TypeAlias = Annotated[
    str,
    typer.Option(
        "--project",
        metavar="PROJECT",
        envvar="MUSTER_PROJECT",
        help="Project of the subscription (default: your only one); `*`: all.",
    ),
]
Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="Name of the subscription.")]


@notify.command("add")
@answers
async def add_subscription(
    context: typer.Context,
    name: Name,
    *,
    webhook: Annotated[str | None, typer.Option(metavar="URL", help="Send each event to this address, signed.")] = None,
    key_file: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="Key that signs, the newest first; without it one is made and shown once."),
    ] = None,
    slack_file: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Send a sentence to the chat whose address is in the file; `-`: stdin."),
    ] = None,
    mail: Annotated[
        list[str] | None, typer.Option(metavar="ADDRESS", help="Send a mail to this address; may be repeated.")
    ] = None,
    event: Annotated[
        list[str] | None,
        typer.Option(metavar="TYPE", help="Only events of this type; `*` stands for any characters. May be repeated."),
    ] = None,
    minimum: Annotated[
        EventSeverity, typer.Option(help="Only events that are at least so grave.")
    ] = EventSeverity.INFO,
    job: Annotated[str, typer.Option(metavar="NAME", help="Only jobs with names like this, as `train-*`.")] = "*",
    mine: Annotated[bool, typer.Option("--mine", help="Only jobs that you have submitted.")] = False,
    owner: Annotated[
        list[str] | None, typer.Option(metavar="ACCOUNT", help="Only jobs of this account; may be repeated.")
    ] = None,
    label: Annotated[
        list[str] | None, typer.Option(metavar="KEY=VALUE", help="Only jobs with this label; may be repeated.")
    ] = None,
    project: ProjectOf = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the subscription of that name, if there is one.")
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Have a target told of events. Members subscribe to their own jobs, operators to all of the project.

    Examples:
      muster notify add me --mail ada@example.com --mine --minimum critical
      muster notify add pager --webhook https://pager.example.com/muster --event 'muster.job.*' --project vision
    """
    target, to, keys, made_key = _target(webhook, key_file or (), slack_file, mail or ())
    async with session_of(context).client() as client:
        own = (await client.accounts.myself()).name if mine else ""
        wish = Subscription(
            project=project,
            name=name,
            target=target,
            to=to,
            events=tuple(event or ("*",)),
            minimum=minimum,
            jobs=job,
            owners=(*(owner or ()), *((own,) if own else ())),
            labels=dict(map(_label, label or ())),
        )
        made = await client.notifications.put(wish, keys, replace=replace)
    if not output.for_people:
        say_lines(text_of(made, output))
    else:
        where = f"`muster notify test {made.name} --project '{made.project}'`"
        say(f"subscription {made.name} of {_whose(made.project)} is kept; {where} tries it")
    if made_key:
        print_dim("its key, which the receiver needs; it is not shown again:")
        say(made_key)


@notify.command("list")
@answers
async def list_subscriptions(context: typer.Context, *, project: ProjectOf = "", output: Output = Format.TABLE) -> None:
    """List the subscriptions of a project, and how deliveries go.

    Examples:
      muster notify list
      muster notify list --project '*' -o wide
    """
    async with session_of(context).client() as client:
        found = await client.notifications.list(project)
    if output.for_people:
        _show(found, output)
    else:
        say_lines(text_of(found, output))


@notify.command("log")
@answers
async def show_deliveries(
    context: typer.Context, name: Name, *, project: ProjectOf = "", output: Output = Format.TABLE
) -> None:
    """Show the last tries to deliver to a target, the newest first.

    Examples:
      muster notify log pager
      muster notify log pager --project vision -o json
    """
    async with session_of(context).client() as client:
        found = await client.notifications.deliveries(name, project)
    if output.for_people:
        _show_tries(found, output)
    else:
        say_lines(text_of(found, output))


@notify.command("test")
@answers
async def try_subscription(
    context: typer.Context, name: Name, *, project: ProjectOf = "", output: Output = Format.TABLE
) -> None:
    """Send a test to a target, and say what it answers.

    Examples:
      muster notify test pager
      muster notify test pager --project vision -o json
    """
    async with session_of(context).client(timeout=TEST_TIMEOUT) as client:
        answer = await client.notifications.test(name, project)
    if not output.for_people:
        say_lines(text_of(answer, output))
    elif answer.taken:
        say(f"the target of {name} has taken the test: {answer.told}")
    if not answer.taken:
        raise ConflictError(f"the target of {name} has not taken the test: {answer.told}")


@notify.command("remove")
@answers
async def remove_subscription(context: typer.Context, name: Name, *, project: ProjectOf = "") -> None:
    """Remove a subscription; what waits for its target is not delivered.

    Examples:
      muster notify remove pager
      muster notify remove pager --project vision
    """
    async with session_of(context).client() as client:
        await client.notifications.remove(name, project)
    say(f"subscription {name}{f' of {_whose(project)}' if project else ''} is forgotten")


def _target(
    webhook: str | None, key_files: Sequence[Path], slack_file: Path | None, mail: Sequence[str]
) -> tuple[SubscriptionTarget, tuple[str, ...], tuple[str, ...], str]:
    """The kind of target, its addresses, its keys, and the key that was made where none was given."""
    if sum(map(bool, (webhook, slack_file, mail))) != 1:
        raise InvalidJobError("say one target: --webhook URL, --slack-file FILE or --mail ADDRESS")
    if key_files and not webhook:
        raise InvalidJobError("--key-file is for --webhook alone")
    if webhook:
        made = "" if key_files else SECRET_PREFIX + base64.b64encode(random_secrets.token_bytes(_KEY_BYTES)).decode()
        return SubscriptionTarget.WEBHOOK, (webhook,), (made,) if made else tuple(map(_content, key_files)), made
    if slack_file is not None:
        return SubscriptionTarget.SLACK, (), (_content(slack_file),), ""
    return SubscriptionTarget.MAIL, tuple(mail), (), ""


def _content(file: Path) -> str:
    """The one line of a file, or of stdin; a fault says nothing of it."""
    try:
        if str(file) == "-":
            return sys.stdin.read(_LONGEST_KEY_FILE).strip()
        with file.open() as stream:
            return stream.read(_LONGEST_KEY_FILE).strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise InvalidJobError(f"cannot read {file}: {reason}") from None


def _label(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise InvalidJobError(f"{text!r} is no label like paper=icml")
    return key, value


def _whose(project: str) -> str:
    return "the fleet" if project == "*" else f"project {project}"


def _show(found: Sequence[Subscription], output: Format) -> None:
    from muster.cli.output.plain.columns import Column
    from muster.cli.output.tables import listing
    from muster.cli.output.units import time_text

    def changed(at: datetime | None, by: str) -> str:
        return "-" if at is None else f"{time_text(at)} by {by or '-'}"

    rows = (
        (
            each.name,
            each.target,
            ", ".join(each.to) or "(kept secret)",
            ", ".join(each.events),
            each.minimum,
            _standing(each),
            changed(each.updated_at, each.updated_by),
        )
        for each in found
    )
    columns = (
        "NAME",
        "TARGET",
        Column("TO", least=12),
        Column("EVENTS", least=12),
        "MINIMUM",
        Column("DELIVERIES", least=12),
        Column("CHANGED", spare=1),
    )
    screen(whole=output is Format.WIDE).print(listing(columns, rows))


def _standing(subscription: Subscription) -> str:
    if subscription.last is None:
        return "none yet"
    if subscription.failures:
        return f"{subscription.failures} failed: {subscription.last.told}"
    return subscription.last.told


def _show_tries(found: Sequence[DeliveryTry], output: Format) -> None:
    from muster.cli.output.plain.columns import Column
    from muster.cli.output.tables import listing
    from muster.cli.output.units import time_text

    rows = (
        (
            time_text(each.at),
            "taken" if each.taken else "failed",
            f"{each.took.total_seconds():.2f} s",
            each.told,
            each.event,
        )
        for each in found
    )
    columns = ("TIME", "OUTCOME", "TOOK", Column("ANSWER", least=12), Column("EVENT", spare=1))
    screen(whole=output is Format.WIDE).print(listing(columns, rows))
