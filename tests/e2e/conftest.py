"""One fleet for all e2e tests, and a fresh coordinator with fresh agents for each."""

from collections.abc import Callable, Iterator

import pytest

from tests.e2e import images
from tests.e2e.fleet import Fleet, lacking, open_fleet
from tests.e2e.images import Image, ImageUnavailableError

SIZE = 3
"""Nodes."""


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


def _made(make: Callable[[], Image]) -> Image:
    try:
        return make()
    except ImageUnavailableError as error:
        pytest.skip(str(error))
