"""A short run of chaos; `make chaos MINUTES=10` makes long ones (docs/testing.md)."""

import asyncio

import pytest

from tests.e2e.chaos.campaign import Campaign, summary
from tests.e2e.chaos.story import Story
from tests.e2e.deployment import Deployment

SEED = 10
"""With which eight of the eleven kinds of faults come up; long runs have them all."""

SECONDS = 30


@pytest.mark.fleet
def test_whatever_breaks_every_job_is_accounted_for_and_nothing_is_left(muster: Deployment) -> None:
    story = Story(aloud=True)
    asyncio.run(Campaign(muster, SEED, SECONDS, story).run())
    assert story.findings == [], summary(story, SEED)
