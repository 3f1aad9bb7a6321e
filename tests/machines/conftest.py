"""What the tests of this tier share: one yard, bundles that are made once, and machines as a test asks for them."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.machines import bundles
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


@pytest.fixture(scope="session")
def bundle(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle for machines that have the Python of their release."""
    assert yard
    return bundles.make_bundle(tmp_path_factory.mktemp("bundle"))


@pytest.fixture(scope="session")
def newer_bundle(bundle: Path) -> Path:
    """The same at version 0.1.1, to upgrade to."""
    return bundles.newer(bundle, "0.1.1")


@pytest.fixture(scope="session")
def frozen_bundle(yard: Yard, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle that also brings its Python along."""
    assert yard
    return bundles.make_bundle(tmp_path_factory.mktemp("bundle"), frozen=True)
