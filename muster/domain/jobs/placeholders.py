"""Placeholders in what a role runs: `{{muster:rank}}` and others, which each execution replaces by its own values."""

import re
from collections.abc import Callable, Iterator

ALONE = (
    *("job", "attempt", "project", "role", "name", "rank", "world_size"),
    *("node", "address", "master", "master-port", "config", "outputs"),
)
"""Names that stand for one value."""

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


def written(name: str) -> str:
    """A placeholder as it is written."""
    return f"{{{{muster:{name}}}}}"
