"""The words behind `muster ssh JOB`: a few are Muster's own, and the rest is for ssh."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from muster.domain.errors import InvalidJobError


@dataclass(frozen=True, slots=True, kw_only=True)
class SshWords:
    """What is wanted of `muster ssh`."""

    rank: int | None = None
    vscode: bool = False
    rest: tuple[str, ...] = ()
    """Options of ssh and a command; or, with `vscode`, a directory."""


def own_words(words: Sequence[str], known: SshWords) -> SshWords:
    """What is known, with Muster's own options at the beginning of these words; raises InvalidJobError."""
    match words:
        case ["--rank", number, *rest]:
            return own_words(rest, replace(known, rank=_rank(number)))
        case ["--rank"]:
            raise InvalidJobError("--rank wants a number")
        case ["--vscode", *rest]:
            return own_words(rest, replace(known, vscode=True))
        case ["--", *rest]:
            return replace(known, rest=tuple(rest))
        case [word, *rest] if word.startswith("--rank="):
            return own_words(rest, replace(known, rank=_rank(word.removeprefix("--rank="))))
        case _:
            return replace(known, rest=tuple(words))


def vscode_command(code: str, host: str, rest: Sequence[str]) -> list[str]:
    """VS Code in a window that works on a host; raises InvalidJobError for more than one directory."""
    if len(rest) > 1:
        raise InvalidJobError(f"--vscode takes one directory of the execution, not {' '.join(rest)}")
    return [code, "--remote", f"ssh-remote+{host}", *rest]


def _rank(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise InvalidJobError(f"--rank wants a number, not {text!r}")
    return int(text)
