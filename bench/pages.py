"""What the viewer of one small project waits for: a job by id or by name, and the first page of the list.

Once among 100,000 jobs of other projects and once among 1,000, in turns. The index of the coordinator
(`coordinator/core/cluster/job_index.py`) answers both alike. In memory: there is no network, and nothing is written.
"""

import gc
import random
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta

from bench.figures import Bar
from bench.programs import ProgramError
from bench.setting import Setting, Turns
from coordinator.core.cluster.cluster import Cluster
from coordinator.core.cluster.job_index import Among
from coordinator.core.loading import load
from coordinator.core.records import Attempt, Execution, Job, Record
from coordinator.views.jobs import jobs_page, resolve
from muster.domain.ids import JobId, NodeId, execution_id
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.lifecycle import PROGRESS, State

BEGAN = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
MANY, FEW = 100_000, 1000
MINE = 40
"""Jobs of the small project, whatever the others have; two pages."""
PROJECT = "small"
OTHERS = tuple(f"team-{number}" for number in range(20))
PAGE = 20
LETTERS = 6
"""Letters of an id, which are enough for one of so few jobs."""
ROUNDS = {"find by id": 50, "find by beginning of id": 10, "find by name": 50, "first page of 20": 1}
"""How often each question is asked, of each of the small project's jobs where it names one, for a single value."""
RATIO = 2.0
"""The most that is allowed; a hundred times as many jobs leave less of each in the caches of a CPU."""


def jobs_of_many(count: int) -> Iterator[Record]:
    """So many jobs that have ended, among them those of the small project, evenly spread."""
    chance = random.Random(count)  # noqa: S311 - ids for a measurement
    spec = {project: JobSpec(name="train", project=project, roles=(Role(command=("train",)),)) for project in OTHERS}
    every = count // MINE
    for number in range(count):
        job, at = JobId(f"{chance.getrandbits(40):010x}"), BEGAN + timedelta(seconds=number)
        mine = number % every == 0 and number // every < MINE
        own = JobSpec(name=f"own-{number // every}", project=PROJECT, roles=(Role(command=("train",)),))
        wanted = own if mine else spec[OTHERS[number % len(OTHERS)]]
        yield Job(id=job, spec=wanted, sequence=number + 1, submitted_at=at, ended_at=at)
        yield Attempt(job=job, number=1, placed_at=at, checked_in_at=at, released_at=at, started_at=at, ended_at=at)
        yield Execution(
            id=execution_id(job, 1, 0),
            job=job,
            attempt=1,
            rank=0,
            state=State.SUCCEEDED,
            times=dict.fromkeys((*PROGRESS, State.SUCCEEDED), at),
            node=NodeId(f"node{number % 100}"),
            exit=Exit(code=0),
            log_complete=True,
        )


class Viewer:
    """Somebody who may see the small project alone, beside so many jobs."""

    def __init__(self, count: int) -> None:
        self._cluster: Cluster = load(jobs_of_many(count), BEGAN)
        self._seen = frozenset({PROJECT})
        self._jobs = {job.spec.name: job.id for job in self._cluster.jobs.values() if job.spec.project == PROJECT}
        if (len(self._cluster.jobs), len(self._jobs)) != (count, MINE):
            raise ProgramError(f"{len(self._cluster.jobs)} jobs, of them {len(self._jobs)} of the small project")

    def questions(self) -> Mapping[str, Callable[[], int]]:
        """What is measured; each says how many answers there were."""
        return {
            "find by id": self._find_by_id,
            "find by beginning of id": self._find_by_beginning,
            "find by name": self._find_by_name,
            "first page of 20": self._first_page,
        }

    def _find_by_id(self) -> int:
        return sum(resolve(self._cluster, job, self._seen) == job for job in self._jobs.values())

    def _find_by_beginning(self) -> int:
        return sum(resolve(self._cluster, job[:LETTERS], self._seen) == job for job in self._jobs.values())

    def _find_by_name(self) -> int:
        return sum(resolve(self._cluster, name, self._seen) == job for name, job in self._jobs.items())

    def _first_page(self) -> int:
        page, following = jobs_page(self._cluster, None, PAGE, lambda _: True, Among(projects=self._seen))
        if len(page) != PAGE or following is None:
            raise ProgramError(f"a page of {len(page)} jobs")
        return 1


async def measure(setting: Setting) -> None:
    """Each question in turns, among many jobs and among few."""
    await setting.quiet(f"pages: one project of {MINE} jobs among {MANY} and among {FEW}")
    viewers = {count: Viewer(count) for count in (MANY, FEW)}
    gc.collect()
    gc.freeze()
    turns = Turns(setting.repeats(200, 50))
    for _ in turns:
        for count, viewer in viewers.items():
            for name, question in viewer.questions().items():
                turns.keep({f"{name}, {count} jobs": microseconds(question, ROUNDS[name])})
    gc.unfreeze()
    for name, values in turns.found.items():
        setting.findings.take(f"viewer of one project: {name}", values, "µs")
    for name in ROUNDS:
        bar = Bar(figure=f"viewer of one project, {name}: among {MANY:,} jobs / among {FEW:,}", limit=RATIO)
        ours, theirs = (f"viewer of one project: {name}, {count} jobs" for count in (MANY, FEW))
        setting.findings.ratio(bar, ours, theirs)


def microseconds(question: Callable[[], int], rounds: int) -> float:
    """Time of one answer."""
    began, answers = time.perf_counter(), 0
    for _ in range(rounds):
        answers += question()
    return (time.perf_counter() - began) / answers * 1e6
