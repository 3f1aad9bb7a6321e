"""docs/from-slurm.md: every job file on that page is right, and those that any machine can run do what they say."""

import re
from pathlib import Path

from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import JobPhase
from muster.jobfile import load_jobs
from tests.integration.fleet import running_fleet

PAGE = Path(__file__).parents[2] / "docs" / "from-slurm.md"


def jobs_of_the_page() -> dict[str, JobSpec]:
    """The jobs of all its job files, by name."""
    files = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    return {spec.name: spec for file in files for _, spec in load_jobs(file, PAGE.name)}


def test_each_job_file_of_the_page_asks_for_the_dialect() -> None:
    jobs = jobs_of_the_page()
    assert list(jobs) == ["script", "train", "hostnames", "part-1", "part-2"]
    assert {spec.dialects for spec in jobs.values()} == {(Dialect.SLURM,)}


async def test_a_script_that_asks_for_the_names_of_its_nodes_goes_on_as_it_is(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a", "b") as fleet:
        job = await fleet.run(jobs_of_the_page()["hostnames"])
        assert job.phase is JobPhase.SUCCEEDED, job.summary
        told = sorted(await fleet.texts(job.id, follow=True))
        assert told == [f"{rank} task {rank} of 4 on 4 nodes" for rank in range(4)]


async def test_the_parts_of_an_array_are_jobs_of_their_own(tmp_path: Path) -> None:
    jobs = jobs_of_the_page()
    async with running_fleet(tmp_path, "a") as fleet:
        for number in (1, 2):
            job = await fleet.run(jobs[f"part-{number}"])
            assert await fleet.texts(job.id, follow=True) == [f"0 part {number}, task 0 of 1"]
