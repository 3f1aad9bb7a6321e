"""What is wrong with a job, as a value: where, and in which words."""

from dataclasses import dataclass

from muster.domain.quoting import quote

Path = tuple[str | int, ...]
"""The way to a value by the keys of a job file; roles are always written `("roles", number)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One thing that is wrong with a job, and where."""

    path: Path
    message: str
    """A sentence without its subject."""
    suggestion: str | None = None
    """What was probably meant."""

    def __str__(self) -> str:
        meant = "" if self.suggestion is None else f"; did you mean {quote(self.suggestion)}?"
        return f"{spell(self.path)}: {self.message}{meant}"


def spell(path: Path) -> str:
    """The path as people write it: `roles[0].resources.gpus`, `env["A B"]`."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.replace("-", "_").isidentifier():
            text += f".{part}"
        else:
            text += f"[{quote(part)}]"
    return text.removeprefix(".")
