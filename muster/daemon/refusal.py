"""How a program ends that cannot do what it is for: with a sentence, and no traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from muster.domain.errors import MusterError, first_of
from muster.domain.visible_text import visible


@contextmanager
def refusing(program: str) -> Iterator[None]:
    """Exit with the error that comes out of the body, alone or in a group, after the name of the program."""
    refusal = ""
    try:
        yield
    except* MusterError as errors:
        refusal = f"{program}: {first_of(errors)}"
    if refusal:  # raised further up it would come in a group before Python 3.11.4
        sys.exit(visible(refusal, lines=True))


_OURS = ("muster", "coordinator", "agent", "console")


@contextmanager
def requiring(program: str, distribution: str) -> Iterator[None]:
    """Exit with a sentence where the body imports a library that only `distribution` brings along."""
    sentence = ""
    try:
        yield
    except ModuleNotFoundError as error:
        sentence = what_to_install(program, distribution, error)
    if sentence:
        sys.exit(sentence)


def what_to_install(program: str, distribution: str, error: ModuleNotFoundError) -> str:
    """The sentence about a library that is not installed; raises the error again when the module is one of ours."""
    missing = (error.name or "").partition(".")[0]
    if not missing or missing in _OURS:
        raise error
    return f"{program} needs the package {missing}, which is not installed: `pip install {distribution}` brings it"
