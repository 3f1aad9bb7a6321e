"""Names and pages among the jobs of many projects: what others have costs nothing, and is not seen."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.core.cluster.job_index import IDS_TOGETHER, Among, JobIndex, SortedIds
from coordinator.core.records import Job
from coordinator.views.jobs import LOOKED_AT, jobs_page, resolve
from muster.domain.errors import ConflictError, UnknownNameError
from muster.domain.ids import JobId
from muster.domain.jobs.job import JobSpec, Role
from tests.builders import World, spec

AT = datetime(2026, 11, 22, 9, 0, tzinfo=UTC)
THEIRS = 3000
LOOKS = 40
"""Records that a question among few jobs may look at."""


def submit(w: World, name: str, project: str) -> JobId:
    return w.submit(JobSpec(name=name, project=project, roles=(Role(command=("a",)),)), queue_anyway=True)


def everyone(job: Job) -> bool:
    del job
    return True


def pages(w: World, size: int, *seen: str, live: bool = False) -> list[JobId]:
    """All jobs of some projects, page by page."""
    found: list[JobId] = []
    before = None
    while True:
        page, before = jobs_page(w.cluster, before, size, everyone, Among(projects=seen, live=live))
        found += [view.id for view in page]
        if before is None:
            return found


class Counted(dict[JobId, Job]):
    """Records that count how many of them are looked at."""

    looks = 0

    def __getitem__(self, job: JobId) -> Job:
        self.looks += 1
        return super().__getitem__(job)

    def get(self, job: JobId, default: Any = None) -> Any:
        self.looks += 1
        return super().get(job, default)

    def __iter__(self) -> Iterator[JobId]:
        for job in super().__iter__():
            self.looks += 1
            yield job

    def values(self) -> Any:
        return [self[job] for job in self]

    def items(self) -> Any:
        return [(job, self[job]) for job in self]


def fill(w: World, count: int) -> None:
    """Have so many newer jobs of another project, which nobody may have to look at."""
    known = next(iter(w.cluster.jobs.values()))
    theirs = replace(known.spec, name="train", project="theirs")
    for number in range(w.cluster.job_index.submits.next_sequence, w.cluster.job_index.submits.next_sequence + count):
        w.cluster.put(replace(known, id=JobId(f"k{number:05}"), sequence=number, spec=theirs))


@pytest.fixture(scope="module")
def crowded() -> World:
    """Three jobs of one project, and very many newer ones of another."""
    w = World(projects=["mine"])
    for number in range(3):
        submit(w, f"mine-{number}", "mine")
    fill(w, THEIRS)
    w.cluster.records.jobs = Counted(w.cluster.records.jobs)
    return w


@pytest.mark.parametrize("name", ["mine-1", "train", "nobody", "j", "j002", "k", ""])
def test_a_name_is_found_without_a_look_at_the_jobs_of_others(crowded: World, name: str) -> None:
    assert isinstance(crowded.cluster.jobs, Counted)
    before = crowded.cluster.jobs.looks
    try:
        found = resolve(crowded.cluster, name, {"mine"})
    except (UnknownNameError, ConflictError):
        found = None

    assert crowded.cluster.jobs.looks - before <= LOOKS
    assert (found is not None) == (name in {"mine-1", "j002"})


def test_a_page_is_made_without_a_look_at_the_jobs_of_others(crowded: World) -> None:
    assert isinstance(crowded.cluster.jobs, Counted)
    before = crowded.cluster.jobs.looks

    assert len(pages(crowded, 2, "mine")) == 3
    assert crowded.cluster.jobs.looks - before <= LOOKS


def test_of_other_projects_nothing_is_found() -> None:
    w = World(projects=["mine", "theirs"])
    mine, theirs, other = submit(w, "train", "mine"), submit(w, "train", "theirs"), submit(w, "other", "theirs")

    assert resolve(w.cluster, "train") == theirs
    assert [resolve(w.cluster, name, {"mine"}) for name in ("train", "j", mine)] == [mine] * 3
    for name in (theirs, other, "other"):
        with pytest.raises(UnknownNameError):
            resolve(w.cluster, name, {"mine", "nobodys"})


def test_of_several_projects_the_newest_of_a_name_is_found_and_pages_are_newest_first() -> None:
    w = World(projects=["p0", "p1", "p2"])
    jobs = [submit(w, "train", f"p{number % 3}") for number in range(9)]

    assert resolve(w.cluster, "train", {"p0", "p2"}) == jobs[8]
    assert pages(w, 2, "p0", "p2") == [jobs[number] for number in (8, 6, 5, 3, 2, 0)]
    w.delete(jobs[8], force=True)
    assert resolve(w.cluster, "train", {"p0", "p2"}) == jobs[6]
    w.stop(jobs[5])
    assert pages(w, 2, "p0", "p2", live=True) == [jobs[number] for number in (6, 3, 2, 0)]
    w.restart()
    assert pages(w, 2, "p0", "p2", live=True) == [jobs[number] for number in (6, 3, 2, 0)]


def test_the_beginning_of_very_many_ids_is_not_counted_to_the_end() -> None:
    w = World()
    for number in range(9):
        submit(w, str(number), "default")

    with pytest.raises(ConflictError, match=r"^more than 5 jobs have an id that begins with 'j' \(j001, .*, …\)"):
        resolve(w.cluster, "j")


def test_a_page_for_which_many_jobs_are_looked_at_ends_early_and_nothing_is_left_out() -> None:
    w = World()
    oldest = submit(w, "rare", "default")
    fill(w, LOOKED_AT + 5)
    looked: list[JobId] = []

    def rare(job: Job) -> bool:
        looked.append(job.id)
        return job.spec.name == "rare"

    first, before = jobs_page(w.cluster, None, 5, rare)
    assert (first, len(looked)) == ([], LOOKED_AT)
    second, before = jobs_page(w.cluster, before, 5, rare)
    assert [view.id for view in second] == [oldest]
    assert (before, len(looked), len(set(looked))) == (None, LOOKED_AT + 6, LOOKED_AT + 6)


OWNERS = ("ada", "bea", "cleo")
VALUES = ("x", "y")


@given(
    jobs=st.lists(
        st.tuples(
            st.sampled_from(["p0", "p1"]),
            st.sampled_from(OWNERS),
            st.dictionaries(st.sampled_from(["paper", "run"]), st.sampled_from(VALUES)),
            st.booleans(),
        ),
        max_size=25,
    ),
    gone=st.sets(st.integers(0, 24)),
    among=st.builds(
        Among,
        projects=st.none() | st.sets(st.sampled_from(["p0", "p1", "nobodys"])),
        owners=st.none() | st.sets(st.sampled_from([*OWNERS, "nobody"])),
        labels=st.dictionaries(st.sampled_from(["paper", "run"]), st.sampled_from([*VALUES, "none"]), max_size=2),
        live=st.booleans(),
    ),
)
def test_those_are_found_that_every_condition_allows(
    jobs: list[tuple[str, str, dict[str, str], bool]], gone: set[int], among: Among
) -> None:
    index, there = JobIndex(), list[Job]()
    for number, (project, owner, labels, ended) in enumerate(jobs):
        asked = JobSpec(name="a", project=project, labels=labels, roles=(Role(command=("a",)),))
        job = Job(id=JobId(f"j{number}"), spec=asked, owner=owner, sequence=number + 1, submitted_at=AT)
        index.put(None, job)
        if ended:
            running, job = job, replace(job, ended_at=AT)
            index.put(running, job)
        there.append(job)
    for number in sorted(gone & set(range(len(jobs)))):
        index.drop(there[number])

    def allowed(job: Job) -> bool:
        return (
            (among.projects is None or job.spec.project in among.projects)
            and (among.owners is None or job.owner in among.owners)
            and among.labels.items() <= job.spec.labels.items()
            and not (among.live and job.ended_at is not None)
        )

    expected = [job.id for number, job in reversed(list(enumerate(there))) if number not in gone and allowed(job)]
    assert [job for _, job in index.newest_first(among=among) if job is not None] == expected
    for live in (False, True):
        counted = index.newest_first(among=Among(projects=["p0"], live=live))
        assert index.count_in("p0", live=live) == sum(1 for _ in counted)
    # Whoever stops after any step, and goes on below the number that it told, misses none and gets none twice.
    before: int | None = None
    found = list[JobId]()
    while (step := next(index.newest_first(before, among), None)) is not None:
        before = step[0]
        found += [] if step[1] is None else [step[1]]
    assert found == expected


def test_jobs_of_one_person_with_a_label_are_found_without_a_look_at_the_others() -> None:
    w = World()
    rare = w.submit(spec(1, labels={"paper": "icml"}), queue_anyway=True)
    mine = w.cluster.jobs[rare]
    for number in range(2, THEIRS):  # Ada has very many jobs, and of others there are as many with the label
        theirs = replace(mine.spec, labels={} if number % 2 else mine.spec.labels)
        owner = "ada" if number % 2 else "bea"
        w.cluster.put(replace(mine, id=JobId(f"k{number:05}"), owner=owner, sequence=number, spec=theirs))
    among = Among(owners=["local"], labels={"paper": "icml"})

    steps = [job for _, job in w.cluster.job_index.newest_first(among=among)]
    assert [job for job in steps if job is not None] == [rare]
    assert len(steps) <= LOOKS


@given(
    ids=st.lists(st.text("abc", min_size=1, max_size=4), unique=True, max_size=60).map(
        lambda ids: list(map(JobId, ids))
    ),
    prefix=st.text("abc", max_size=3),
    data=st.data(),
)
def test_sorted_ids_are_as_a_sorted_list(ids: list[JobId], prefix: str, data: st.DataObject) -> None:
    known = SortedIds()
    for each in ids:
        known.add(each)
    gone = data.draw(st.lists(st.sampled_from(ids), unique=True)) if ids else []
    for each in gone:
        known.remove(each)

    assert list(known.beginning_with(prefix)) == sorted(
        each for each in ids if each.startswith(prefix) and each not in gone
    )


def test_very_many_ids_lie_in_chunks() -> None:
    known, count = SortedIds(), IDS_TOGETHER * 7
    ids = [JobId(f"{number * 7919 % count:05}") for number in range(count)]
    for each in ids:
        known.add(each)

    assert list(known.beginning_with("")) == sorted(ids)
    assert list(islice(known.beginning_with("01"), 3)) == ["01000", "01001", "01002"]
    for each in ids:
        known.remove(each)
    assert list(known.beginning_with("")) == []
