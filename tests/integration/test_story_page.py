"""The page about events shows what is really told of a job."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from muster.domain.event import FleetEventKind, JobEventKind, NodeEventKind
from tests.integration.story_page import PAGE, block_of, told

ROW = re.compile(r"^\| (`\w+`(?:, `\w+`)*) \|", re.MULTILINE)
SENTENCE = re.compile(r"Z info (.*?) (?:job|execution)=")


async def test_a_job_tells_what_the_page_shows(tmp_path: Path) -> None:
    page = PAGE.read_text()

    story = await told(tmp_path)

    def kinds(events: str) -> list[str]:
        """Each once, as ranks that end at different moments have events of their own."""
        return list(dict.fromkeys(row.split()[3] for row in events.splitlines() if re.match(r"\d{4}-", row)))

    def sentences(journal: str) -> set[str]:
        return set(SENTENCE.findall(journal))  # ranks that are not at the same moment have lines of their own

    assert kinds(story.events) == kinds(block_of(page, "events"))
    assert sentences(story.coordinator) == sentences(block_of(page, "coordinator"))
    assert sentences(story.agent) == sentences(block_of(page, "agent"))


@pytest.mark.parametrize(
    ("heading", "kinds"),
    [
        ("### The events of jobs", JobEventKind),
        ("## What happened to a node", NodeEventKind),
        ("## What happened to the fleet", FleetEventKind),
    ],
)
def test_the_page_lists_every_kind_of_event(heading: str, kinds: Iterable[str]) -> None:
    part = PAGE.read_text().partition(f"\n{heading}\n")[2].partition("\n## ")[0]

    assert {kind for row in ROW.findall(part) for kind in re.findall(r"\w+", row)} == set(kinds)
