"""The page about events shows what is really told of a job."""

import re
from pathlib import Path

from tests.integration.story_page import PAGE, block_of, told

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
