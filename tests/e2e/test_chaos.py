"""A short run of chaos; `make chaos MINUTES=10` makes long ones (docs/testing.md)."""

import asyncio
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.e2e.chaos.campaign import Campaign, summary
from tests.e2e.chaos.disks import Disk, small_disks
from tests.e2e.chaos.story import Story
from tests.e2e.deployment import Deployment, deployed
from tests.e2e.fleet import Fleet

SEED = 314
"""The seed with which nine of the thirteen kinds of faults come up, both disks among them; long runs have them all."""

SECONDS = 30


@pytest.fixture
def directory(fleet: Fleet) -> Iterator[Path]:
    """The directory of the deployment."""
    with tempfile.TemporaryDirectory(dir=fleet.directory) as made:
        yield Path(made)


@pytest.fixture
def disks(fleet: Fleet, directory: Path) -> Iterator[Mapping[str, Disk]]:
    """Disks that can be filled."""
    with small_disks(fleet, directory) as made:
        yield made


@pytest.fixture
def muster(fleet: Fleet, directory: Path, disks: Mapping[str, Disk]) -> Iterator[Deployment]:
    """A coordinator and, later, an agent, each with its state on a small disk."""
    assert disks
    with deployed(fleet, directory) as deployment:
        yield deployment


@pytest.mark.fleet
def test_whatever_breaks_every_job_is_accounted_for_and_nothing_is_left(
    muster: Deployment, disks: Mapping[str, Disk]
) -> None:
    story = Story(aloud=True)
    asyncio.run(Campaign(muster, SEED, SECONDS, story, disks).run())
    assert story.findings == [], summary(story, SEED)
