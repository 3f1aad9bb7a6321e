"""The parts of the benchmarks can be started, by the names that the documents give them."""

import re

from bench.__main__ import SECTIONS
from bench.pages import MINE, PROJECT, ROUNDS, Viewer, jobs_of_many
from bench.report import DOCS
from coordinator.core.records import Job


def test_the_documents_name_only_parts_that_there_are() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
    named = {name for names in re.findall(r"make bench ONLY=([a-z,]+)", text) for name in names.split(",")}
    assert "gangs" in named
    assert named <= set(SECTIONS)


def test_the_viewer_of_one_project_finds_all_its_jobs_by_every_question() -> None:
    answers = {name: question() for name, question in Viewer(10 * MINE).questions().items()}
    assert answers == {name: 1 if "page" in name else MINE for name in ROUNDS}


def test_the_small_project_is_as_large_among_few_as_among_many() -> None:
    for count in (10 * MINE, 30 * MINE + 7):
        jobs = [record for record in jobs_of_many(count) if isinstance(record, Job)]
        assert len({job.id for job in jobs}) == count
        assert sum(job.spec.project == PROJECT for job in jobs) == MINE
