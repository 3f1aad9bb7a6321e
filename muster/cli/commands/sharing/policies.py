"""The command about policies: what jobs of the fleet, and of a project, may say."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from muster.cli.commands.sharing.quotas import values_of
from muster.cli.context import answers, session_of
from muster.cli.options import Output
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines, screen
from muster.domain.errors import InvalidJobError
from muster.domain.fleet.policies.policy import JobPolicy, PolicyRule
from muster.jobfile.policies import policy_document, policy_rules

if TYPE_CHECKING:
    from muster.cli.output.tables import TextTable


@answers
async def policy(
    context: typer.Context,
    project: Annotated[str, typer.Argument(metavar="PROJECT", help="Name of the project; `*` for the fleet.")],
    *,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", metavar="FILE", help="YAML file with the new `rules`; `-`: input.")
    ] = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the policy, with all its rules.")] = False,
    effective: Annotated[bool, typer.Option("--effective", help="Show the rules of the fleet, too.")] = False,
    output: Output = Format.TABLE,
) -> None:
    """Show, set or remove the rules for what jobs of a project may say.

    A job keeps the rules of the fleet and those of its project, so a project only narrows. New rules replace the old
    ones. Jobs that were accepted are not affected.

    Examples:
      muster projects policy vision --effective
      muster projects policy vision --file policy.yaml
    """
    if remove + effective + (file is not None) > 1:
        raise InvalidJobError("say one of --file, --remove and --effective")
    rules = {} if file is None else policy_rules(values_of(file))
    async with session_of(context).client() as client:
        if remove or file is not None:
            made = await client.projects.set_policy(project, rules)
            say(f"{made.source} has rules for {len(made.rules)} keys" if made.rules else f"{made.source} has no policy")
            return
        found = await client.projects.policies(project)
    own = next((each for each in found if each.project == project), JobPolicy(project=project))
    shown = found if effective else (own,)
    if output.for_people:
        screen().print(_policy_table(shown))
        return
    say_lines(text_of(found if effective else policy_document(own.rules), output))


def _policy_table(policies: Sequence[JobPolicy]) -> "TextTable":
    from muster.cli.output.tables import listing

    rows = sorted((key, rule, each.source) for each in policies for key, rule in each.rules.items())
    return listing(("KEY", "RULES", "POLICY OF"), ((key, ", ".join(_told(rule)), source) for key, rule, source in rows))


def _told(rule: PolicyRule) -> Iterator[str]:
    yield from (word for word in ("required", "locked") if getattr(rule, word))
    yield from (f"{word} {getattr(rule, word)}" for word in ("min", "max", "step", "pattern") if getattr(rule, word))
    if rule.options:
        yield f"options {' '.join(rule.options)}"
    yield from (f"no {word}" for word in ("edit", "add") if not getattr(rule, word))
