"""Submits of job files that name presets: what jobs are made, what they note, and what is refused of one or of many."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest

from coordinator.service.archive import Archive, StoredPast
from coordinator.service.jobs import JobOperations
from coordinator.service.submitting import Submission, SubmitDesk
from coordinator.store.records.memory import MemoryStore
from coordinator.trust.presets import Presets
from muster.domain.errors import InvalidJobError, JobsRefusedError, UnknownNameError
from muster.domain.fleet.access import Access, AuditEntry, Permissions
from muster.domain.fleet.policies.preset import Preset, PresetKind
from muster.domain.jobs.job import JobSpec, Role
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.service.callers import Trusted, person, secrets_in_memory
from tests.unit.coordinator.trust.memory_trust import NOW

RED = person("red", red=Access.MEMBER)
ENTRY = AuditEntry(at=NOW, who="red", what="presets.put", target="", origin="", result="ok")
TORCH = Preset(project="red", kind=PresetKind.ENVIRONMENT, name="torch", document={"env": {"A": "1"}})
DOCUMENT = '{"name": "a", "use": {"environment": "torch"}, "command": "true", "workers": 2}'


def described(document: str = DOCUMENT, *, dry_run: bool = False) -> Submission:
    """A submission of a document of which its transport has read the name alone."""
    spec = JobSpec(name="a", roles=(Role(),))
    return Submission(spec=spec, document=document, queue_anyway=True, dry_run=dry_run)


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[JobOperations, Presets]]:
    trusted, engine = Trusted(), engine_on(MemoryStore())
    presets = Presets(trusted.store, trusted.registry.projects)
    desk = SubmitDesk(lambda _: Permissions(), secrets_in_memory(trusted.registry.projects), presets=presets)
    async with working(engine):
        archive = Archive(logs=None, points=None, past=StoredPast(MemoryStore()))  # type: ignore[arg-type]  # unused
        yield JobOperations(trusted.operations, engine, desk, archive), presets


async def test_a_job_notes_its_versions_and_stays_as_it_is_when_there_are_newer_ones() -> None:
    async with serving() as (jobs, presets):
        await presets.put(TORCH, ENTRY)
        first = await jobs.submit(RED, described())
        await presets.put(replace(TORCH, document={"env": {"A": "2"}}), ENTRY)
        second = await jobs.submit(RED, described())
        pinned = await jobs.submit(RED, described(DOCUMENT.replace("torch", "torch@1")))
        tried = await jobs.submit(RED, described(dry_run=True))
        many = await jobs.submit_many(RED, [described(), described()], 2)

        seen = [await jobs.get(RED, job) for job in (first.id, second.id, pinned.id, many[1])]

    assert [dict(each.spec.roles[0].env) for each in seen] == [{"A": "1"}, {"A": "2"}, {"A": "1"}, {"A": "2"}]
    assert [each.presets[0].version for each in (*seen, tried)] == [1, 2, 1, 2, 2]
    assert {each.spec.project for each in seen} == {"red"}
    assert tried.origins == {"env.A": "environment torch@2 of project red"}
    assert not first.origins


async def test_what_cannot_be_made_of_a_document_is_refused_by_itself_and_among_many() -> None:
    async with serving() as (jobs, presets):
        await presets.put(TORCH, ENTRY)
        wrong = {
            DOCUMENT.replace("torch", "none"): "use.environment: neither project red nor the fleet has",
            DOCUMENT.replace("torch", "torch@2"): "use.environment: environment torch of project red has no version 2",
            DOCUMENT.replace('"workers": 2', '"workers": 0'): "workers: ",
            "[]": "the document of the job must be a map",
        }
        for document, told in wrong.items():
            with pytest.raises(InvalidJobError) as refused:
                await jobs.submit(RED, described(document))
            assert str(refused.value).startswith(told)
        with pytest.raises(JobsRefusedError) as some:
            await jobs.submit_many(RED, [described(), *map(described, wrong)], 5)
        assert sorted(some.value.refused) == [1, 2, 3, 4]
        elsewhere = DOCUMENT.replace('"name"', '"project": "blue", "name"')
        assert (await jobs.submit(RED, described(elsewhere))).spec.project == "red"  # where the caller was let in
        with pytest.raises(UnknownNameError):
            await jobs.submit(
                RED, replace(described(elsewhere), spec=JobSpec(name="a", project="blue", roles=(Role(),)))
            )
