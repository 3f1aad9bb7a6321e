"""Placeholders in what a role runs: `{{muster:rank}}` and others, which each execution replaces by its own values."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

ALONE = (
    *("job", "attempt", "project", "role", "name", "rank", "world_size"),
    *("node", "address", "master", "master-port", "config", "outputs"),
)
"""Names that stand for one value."""

EARLY = ("job", "attempt", "project", "role", "name", "rank", "world_size")
"""Names whose values are known before an execution has its data: those that URLs of inputs may have."""

OF_ONE = ("name", "rank")
"""Names whose values no two executions of a role share."""

WITH_EXECUTION = ("address", "host")
"""Names behind which an execution may be named: `address:worker-1`."""

WITH_PORT = "port"
"""The name behind which a port is named, or an execution and its port: `port:http`, `port:worker-1:http`."""

_FORM = re.compile(r"\{\{muster:([^{}]*)\}\}")


def placeholder_names(text: str) -> Iterator[str]:
    """What stands in the placeholders of a text, behind `muster:`; every other brace is text."""
    return (found[1] for found in _FORM.finditer(text))


def filled(text: str, value: Callable[[str], str]) -> str:
    """The text with a value for each placeholder; values are not looked at again."""
    return _FORM.sub(lambda found: value(found[1]), text)


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlyValues:
    """What is known of an execution before it has its data."""

    job: str
    project: str
    attempt: int
    role: str
    role_rank: int
    """The place among the executions of its role."""
    rank: int
    world_size: int

    def fill(self, text: str) -> str:
        """The text with these values in place of placeholders; others stay as they are."""
        own = {
            "job": self.job,
            "project": self.project,
            "attempt": str(self.attempt),
            "role": self.role,
            "name": f"{self.role}-{self.role_rank}",
            "rank": str(self.rank),
            "world_size": str(self.world_size),
        }
        return filled(text, lambda name: own.get(name, written(name)))


def written(name: str) -> str:
    """A placeholder as it is written."""
    return f"{{{{muster:{name}}}}}"
