"""A group of commands about what jobs have, in which a job alone is a list of it."""

from typing import Any

from muster.cli.help import Group

# Click is typer's own affair (some versions bring their own), so its types are not named here.


class ShortList(Group):
    """A group in which a word that is no command is the job of which something is listed."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401 - values of click, which typer hides
        """`JOB` is short for `list JOB`."""
        known = self.get_command(ctx, args[0]) is not None
        return super().resolve_command(ctx, args if known else ["list", *args])
