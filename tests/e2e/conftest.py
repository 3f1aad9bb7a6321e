"""One fleet for all e2e tests, and a fresh coordinator with fresh agents for each."""

import tempfile
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from tests.e2e import images
from tests.e2e.deployment import Deployment, deployed
from tests.e2e.fleet import Fleet, lacking, open_fleet
from tests.e2e.images import Image, ImageUnavailableError

SIZE = 3
"""Nodes."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows the ends of the programs' logs."""
    report = yield
    if report.failed and (deployment := getattr(item, "funcargs", {}).get("muster")):
        report.sections.append(("programs", deployment.report()))
    return report


@pytest.fixture(scope="session")
def fleet() -> Iterator[Fleet]:
    """Three nodes with engines that have the small images."""
    if reason := lacking():
        pytest.skip(reason)
    with open_fleet(SIZE) as opened:
        opened.load(_made(images.busybox), _made(images.python))
        yield opened


@pytest.fixture(scope="session")
def digits_image(fleet: Fleet) -> str:
    """The name of an image with PyTorch and scikit-learn, on every node."""
    image = _made(images.digits)
    fleet.load(image)
    return image.reference


@pytest.fixture
def muster(fleet: Fleet) -> Iterator[Deployment]:
    """A coordinator, and a directory for the test that agents may mount from; agents are for the test to start."""
    with tempfile.TemporaryDirectory(dir=fleet.directory) as directory, deployed(fleet, Path(directory)) as deployment:
        yield deployment


def _made(make: Callable[[], Image]) -> Image:
    try:
        return make()
    except ImageUnavailableError as error:
        pytest.skip(str(error))
