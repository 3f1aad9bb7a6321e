"""Commands for the secrets of projects. No value is taken from the command line, and none is shown again."""

import sys
from collections.abc import Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines, screen
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.secret import KEY_RULES, MAX_VALUE, Secret, SecretKind, problem_with_keys

secrets = typer.Typer(
    help="""Set, list and remove secrets: credentials that jobs get by name.

Examples:
  muster secrets
  muster secrets set wandb key=@wandb.key
""",
    no_args_is_help=True,
)

ProjectOf: TypeAlias = Annotated[
    str,
    typer.Option(
        "--project",
        metavar="PROJECT",
        envvar="MUSTER_PROJECT",
        help="Project of the secret (default: your only project).",
    ),
]
Name: TypeAlias = Annotated[str, typer.Argument(metavar="NAME", help="Name of the secret.")]


@secrets.command("set")
@answers
async def set_secret(
    context: typer.Context,
    name: Name,
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[KEY=@FILE|KEY=-|KEY]...",
            help="Values from a file (KEY=@FILE), from stdin (KEY=-), or asked for (KEY). KEY=VALUE is only for what "
            "is no secret, such as server and username.",
        ),
    ] = None,
    *,
    kind: Annotated[
        SecretKind, typer.Option(help="Kind of the secret; each but `generic` has keys that it must have.")
    ] = (SecretKind.GENERIC),
    project: ProjectOf = "",
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace the secret of that name, if there is one.")
    ] = False,
    output: Output = Format.TABLE,
) -> None:
    """Set a secret of a project: a name with a value for each key.

    Examples:
      muster secrets set wandb key=@wandb.key
      muster secrets set store --kind s3 access_key=@id secret_key=@secret --project vision
    """
    given = dict(_values(kind, _complete(kind, values or ())))
    if problem := problem_with_keys(kind, given):
        raise InvalidJobError(f"the secret {name!r} {problem}")
    async with session_of(context).client() as client:
        made = await client.secrets.set(name, given, kind=kind, project=project, replace=replace)
    if output.for_people:
        say(f"secret {made.name} of project {made.project} is kept, with {', '.join(made.keys)}")
    else:
        say_lines(text_of(made, output))


@secrets.command("list")
@answers
async def list_secrets(context: typer.Context, *, project: ProjectOf = "", output: Output = Format.TABLE) -> None:
    """List the secrets of a project: names and keys, never values.

    Examples:
      muster secrets list
      muster secrets list --project vision
    """
    async with session_of(context).client() as client:
        found = await client.secrets.list(project)
    if output.for_people:
        _show(found, output)
    else:
        say_lines(text_of(found, output))


@secrets.command("remove")
@answers
async def remove_secret(context: typer.Context, name: Name, *, project: ProjectOf = "") -> None:
    """Remove a secret; jobs that run with it keep it until they end.

    Examples:
      muster secrets remove wandb
      muster secrets remove store --project vision
    """
    async with session_of(context).client() as client:
        await client.secrets.remove(name, project)
    say(f"secret {name}{f' of project {project}' if project else ''} is forgotten")


def _show(found: Sequence[Secret], output: Format) -> None:
    from muster.cli.output.plain.columns import Column
    from muster.cli.output.tables import listing
    from muster.cli.output.units import time_text

    def changed(at: datetime, by: str) -> str:
        return f"{time_text(at)} by {by or '-'}"

    rows = (
        (each.name, each.kind, ", ".join(each.keys), each.server or "-", changed(each.updated_at, each.updated_by))
        for each in found
    )
    columns = ("NAME", "KIND", Column("KEYS", least=12), Column("FOR", least=12), Column("CHANGED", spare=1))
    screen(whole=output is Format.WIDE).print(listing(columns, rows))


def _complete(kind: SecretKind, said: Sequence[str]) -> Sequence[str]:
    """What was said, and the keys that a secret of its kind needs besides, to be asked for."""
    alternatives = KEY_RULES[kind].one_of
    keys = {text.partition("=")[0] for text in said}
    if not alternatives and not said:
        raise InvalidJobError("say which keys it has: KEY=@FILE, KEY=- for stdin, or KEY to be asked for its value")
    if not alternatives or any(wanted <= keys for wanted in alternatives):
        return said
    # Of the kind that has two ways, the one that was begun.
    wanted = max(alternatives, key=lambda each: len(each & keys))
    return [*said, *sorted(wanted - keys, key=lambda key: (key not in KEY_RULES[kind].shown, key))]


def _values(kind: SecretKind, said: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    keys = [text.partition("=")[0] for text in said]
    if twice := next((key for key in keys if keys.count(key) > 1), None):
        raise InvalidJobError(f"{twice} is there twice")
    if sum(text.endswith("=-") for text in said) > 1:
        raise InvalidJobError("only one value can come from stdin")
    for text in said:
        key, equals, source = text.partition("=")
        yield key, _value(kind, key, source) if equals else _asked(key, hidden=key not in KEY_RULES[kind].shown)


def _value(kind: SecretKind, key: str, source: str) -> bytes:
    if source == "-":
        return _one_line(sys.stdin.buffer.read(MAX_VALUE + 2))
    if source.startswith("@"):
        return _one_line(_content(Path(source[1:])))
    if key in KEY_RULES[kind].shown:
        return source.encode()
    raise InvalidJobError(
        f"{key}=… on the command line could be read by whoever lists processes, and would stay in the shell's history: "
        f"say {key}=@FILE, {key}=- for stdin, or only {key} to be asked"
    )


def _content(file: Path) -> bytes:
    try:
        with file.open("rb") as stream:
            return stream.read(MAX_VALUE + 2)
    except OSError as error:
        raise InvalidJobError(f"cannot read {file}: {error.strerror}") from error


def _one_line(content: bytes) -> bytes:
    """The content; that of one line without its end, as editors and `echo` add it to tokens."""
    line = content.removesuffix(b"\n").removesuffix(b"\r")
    return content if b"\n" in line else line


def _asked(key: str, *, hidden: bool) -> bytes:
    if not sys.stdin.isatty():
        raise InvalidJobError(f"there is no terminal to ask for {key}: say {key}=@FILE, or {key}=- for stdin")
    asked: str = typer.prompt(key, hide_input=hidden, err=True)
    return asked.encode()
