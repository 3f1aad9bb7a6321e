"""How a program ends that cannot do what it is for: with a sentence, and no traceback."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from muster.domain.errors import MusterError, first_of
from muster.visible_text import visible


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
