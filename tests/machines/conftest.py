"""One yard for all tests of this tier; machines as a test asks for them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from tests.machines.fleet import Machine, Yard, lacking, open_yard

Machines = Callable[..., tuple[Machine, ...]]


@pytest.fixture(scope="session")
def yard() -> Iterator[Yard]:
    """A bridge for machines; skips where there can be none."""
    if reason := lacking():
        pytest.skip(reason)
    with open_yard() as opened:
        yield opened


@pytest.fixture
def machines(yard: Yard) -> Iterator[Machines]:
    """`machines(names, flavour="bare", online=False)` gives booted machines that are gone when the test ends."""
    with ExitStack() as stack:
        yield lambda *args, **options: stack.enter_context(yard.machines(*args, **options))
