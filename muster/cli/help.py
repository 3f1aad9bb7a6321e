"""How the program explains itself: commands by subject, examples under each, and the right word for a wrong one."""

from collections.abc import Mapping, Sequence
from typing import Any

from typer.core import TyperCommand, TyperGroup

SUBJECTS: Mapping[str, Sequence[str]] = {
    "Start": ("up", "down", "demo", "open", "login", "logout", "whoami", "logins"),
    "Jobs": (
        "submit",
        "run",
        "jobs",
        "show",
        "why",
        "wait",
        "logs",
        "metrics",
        "top",
        "events",
        "stop",
        "delete",
        "hold",
        "unhold",
        "suspend",
        "resume",
        "change",
    ),
    "In a job": ("exec", "shell", "attach", "forward", "ssh", "ssh-config", "cp", "sync", "attachments"),
    "Data": ("upload", "outputs", "checkpoints", "volumes", "images"),
    "Sharing": (
        "queue",
        "usage",
        "quota",
        "projects",
        "departments",
        "pools",
        "presets",
        "secrets",
        "notify",
        "windows",
    ),
    "Nodes": ("nodes",),
    "Fleet": ("init", "users", "accounts", "tokens", "audit", "bundles", "authority"),
    "Other": ("schema", "version", "help"),
}
"""Commands in the order in which they are listed. A command that is not here is listed under Other."""

SYNONYMS: Mapping[str, str] = {
    "ls": "`muster jobs` lists jobs, `muster nodes` lists nodes",
    "list": "`muster jobs` lists jobs, `muster nodes` lists nodes",
    "ps": "`muster jobs` lists jobs",
    "squeue": "`muster queue` shows who waits, `muster jobs` lists jobs",
    "sinfo": "`muster nodes` lists nodes",
    "get": "`muster jobs` lists jobs, `muster show JOB` shows one",
    "describe": "`muster show JOB` shows a job, `muster nodes NODE` shows a node",
    "inspect": "`muster show JOB` shows a job, `muster nodes NODE` shows a node",
    "status": "`muster show JOB` shows a job, `muster why JOB` says what it waits for",
    "job": "`muster show JOB` shows a job, `muster jobs` lists them",
    "node": "`muster nodes NODE` shows a node, `muster nodes` lists them",
    "cancel": "`muster stop JOB` stops a job",
    "scancel": "`muster stop JOB` stops a job",
    "kill": "`muster stop JOB` stops a job",
    "rm": "`muster delete JOB` deletes an ended job, `muster stop JOB` stops one that runs",
    "remove": "`muster delete JOB` deletes an ended job, `muster nodes remove NODE` removes a node",
    "apply": "`muster submit FILE` submits a job file",
    "create": "`muster submit FILE` submits a job file",
    "sbatch": "`muster submit FILE` submits a job file",
    "srun": "`muster run -N 2 -- COMMAND` runs a command",
    "log": "`muster logs JOB` prints what a job has printed",
    "tail": "`muster logs -f JOB` follows what a job prints",
    "start": "`muster up` starts a fleet on this machine, `muster run -- COMMAND` a job",
    "drain": "`muster nodes drain NODE` empties a node",
    "cordon": "`muster nodes cordon NODE` keeps new work from a node",
}
"""Words of other systems, and what they are called here."""


class Command(TyperCommand):
    """A command whose help ends with its examples, as they stand in its docstring."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - Click is typer's own affair
        """The text without its examples."""
        whole, self.help = self.help, without_examples(self.help)
        super().format_help_text(ctx, formatter)
        self.help = whole

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - values of click, which typer hides
        """The examples, line by line."""
        super().format_epilog(ctx, formatter)
        write_examples(self.help, formatter)


class Group(TyperGroup):
    """Commands under one word, whose help ends with examples, too. The word alone lists, where there is a list."""

    def parse_args(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - values of click, which typer hides
        """`NOUN [OPTIONS]` is short for `NOUN list [OPTIONS]`."""
        alone = not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names)
        if alone and "list" in self.commands and not ctx.resilient_parsing:
            args = ["list", *args]
        return super().parse_args(ctx, args)

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - values of click, which typer hides
        """The text without its examples."""
        whole, self.help = self.help, without_examples(self.help)
        super().format_help_text(ctx, formatter)
        self.help = whole

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - values of click, which typer hides
        """The examples, line by line."""
        super().format_epilog(ctx, formatter)
        write_examples(self.help, formatter)


class Program(Group):
    """All commands, by subject."""

    def format_commands(self, _ctx: Any, formatter: Any) -> None:  # noqa: ANN401 - values of click, which typer hides
        """One section for each subject."""
        listed = {name for names in SUBJECTS.values() for name in names}
        rest = [name for name in self.commands if name not in listed]
        for subject, names in SUBJECTS.items():
            shown = [*names, *(rest if subject == "Other" else ())]
            rows = [(name, self.commands[name].get_short_help_str(70)) for name in shown if name in self.commands]
            if rows:
                with formatter.section(subject):
                    formatter.write_dl(rows, col_max=12)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - values of click, which typer hides
        """The command that is called; words of other systems are answered with the right one."""
        if args and args[0] in SYNONYMS and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"there is no command {args[0]!r}: {SYNONYMS[args[0]]}")
        return super().resolve_command(ctx, args)


def command_in(root: Any, words: Sequence[str]) -> str:  # noqa: ANN401 - values of click, which typer hides
    """The help of the command that the words name, below the context of the program."""
    context = root
    for word in words:
        group = context.command
        found = group.get_command(context, word) if isinstance(group, TyperGroup) else None
        if found is None:
            hint = f": {SYNONYMS[word]}" if word in SYNONYMS else f"; `{context.command_path} --help` lists them"
            root.fail(f"there is no command {word!r}{hint}")
        context = type(context)(found, info_name=word, parent=context)
    text: str = context.get_help()
    return text


def without_examples(text: str | None) -> str | None:
    """The help of a command up to its examples."""
    return None if text is None else _parts(text)[0]


def write_examples(text: str | None, formatter: Any) -> None:  # noqa: ANN401 - values of click, which typer hides
    """Write the examples of a help text, if it has any."""
    examples = _parts(text or "")[1]
    if examples:
        formatter.write(f"\nExamples:\n{examples.rstrip()}\n")


def _parts(text: str) -> tuple[str, str]:
    before, _, examples = text.partition("\nExamples:\n")
    return before.rstrip(), examples
