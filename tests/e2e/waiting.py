"""Waiting for what other programs do, with a limit."""

import time
from collections.abc import Callable
from typing import TypeVar

Found = TypeVar("Found")

PAUSE = 0.02
"""Seconds between two looks at something that sends no event, such as a socket that is about to answer.

A look that takes long, as it starts a program, is followed by a pause as long: it takes the processor from what it
waits for.
"""


class WaitedTooLongError(AssertionError):
    """What a test waited for did not come; says what that was."""


def until(look: Callable[[], Found | None], *, within: float, what: str) -> Found:
    """The first answer of `look` that is neither None nor False; WaitedTooLongError after `within` seconds."""
    began = time.monotonic()
    limit = began + within
    while not (found := look()):
        looked = time.monotonic()
        if looked > limit:
            raise WaitedTooLongError(f"waited {within:g} s for {what}")
        time.sleep(max(PAUSE, looked - began))
        began = time.monotonic()
    return found
