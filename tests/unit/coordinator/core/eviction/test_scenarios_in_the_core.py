"""The scenarios of shares and evictions in the whole core, with agents that do as they are told."""

from dataclasses import replace
from datetime import timedelta

import pytest

from coordinator.core.answers import QuotasSet
from muster.domain.fleet.quota import UNLIMITED_AMOUNT, AmountBounds, QuotaTerms, QuotaUnit, UnitKind, UnitTerms
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec, Packing
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import State
from tests.builders import World, pass_time, spec
from tests.unit.coordinator.core.eviction.plain_rooms import UNLIMITED, PlainJob, PlainUnit
from tests.unit.coordinator.core.eviction.scenarios import SCENARIOS, Scenario

NOW = 1000
LEASE_SECONDS = 40
FILLER = "filler"


class WholeCore:
    """A scenario in the core: what runs is started first, then terms are set, then what waits is submitted."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._above = {unit.above for unit in scenario.units}
        projects = {unit.name.lower() for unit in scenario.units if unit.name not in self._above}
        self.world = World(*scenario.nodes.items(), projects=("default", *sorted(projects)))
        self._ids: dict[JobId, str] = {}

    def run(self) -> frozenset[str]:
        """The names of the jobs that run in the end."""
        world, given = self.world, self._scenario.pool()
        pass_time(world, LEASE_SECONDS)
        for job in sorted(given.running, key=lambda job: (job.started_at, job.sequence)):
            self._pass_until(job.started_at)
            self._start(self._submit(job, Packing.SPREAD))
        saved = {job.name for job in given.running if job.saved_at is not None}
        filler = None if given.running else self._fill()
        self._set_terms()
        self._pass_until(NOW)
        for each, name in self._ids.items():
            if name in saved:
                world.tell(each, 0, Stage.RUNNING, saved_at=world.now)
        for job in given.waiting:
            self._submit(job)
        if filler is not None:
            self._end(filler, State.RUNNING)
        while stopping := [each for each in self._ids if State.STOPPING in world.states(each)]:
            for each in stopping:
                self._end(each, State.STOPPING)
        runs = {name for each, name in self._ids.items() if State.QUEUED not in world.states(each)}
        return frozenset(runs - {FILLER})

    def _submit(self, job: PlainJob, packing: Packing = Packing.PACK) -> JobId:
        found = self.world.submit(replace(self._spec(job), packing=packing))
        self._ids[found] = job.name
        return found

    def _start(self, job: JobId) -> None:
        self.world.tell_all(job, Stage.PREPARED, Stage.ARMED, Stage.RUNNING)

    def _end(self, job: JobId, state: State) -> None:
        for member in list(self.world.cluster.gangs.members(self.world.cluster.jobs[job].attempt_id)):
            if member.state is state:
                self.world.tell(job, member.rank, Stage.EXITED, exit=Exit(code=0))

    def _fill(self) -> JobId:
        """Keep all GPUs until everybody waits, so that they are looked at together."""
        [(_, gpus)] = self._scenario.nodes.items()
        filler = self.world.submit(spec(1, gpus=gpus, job_class=JobClass.GUARANTEED))
        self._start(filler)
        return filler

    def _spec(self, job: PlainJob) -> JobSpec:
        return spec(
            job.count,
            gpus=job.gpus,
            cpus=0.1,
            project=job.project.lower(),
            job_class=JobClass(job.job_class),
            priority=job.priority,
        )

    def _set_terms(self) -> None:
        if any(unit.quota is not None for unit in self._scenario.units) or self._has_protections:
            units = sorted(self._scenario.units, key=lambda unit: unit.above)
            for unit in units:
                answer = self.world.change_units(self._unit(unit))
                assert isinstance(answer, QuotasSet), answer

    @property
    def _has_protections(self) -> bool:
        return any(unit.min_runtime_within for unit in self._scenario.units)

    def _unit(self, unit: PlainUnit) -> QuotaUnit:
        counted = any(each.quota is not None for each in self._scenario.units)
        quota = None if not counted else UNLIMITED_AMOUNT if unit.quota is None else unit.quota * 1000
        department = unit.name in self._above
        return QuotaUnit(
            name=unit.name.lower(),
            kind=UnitKind.DEPARTMENT if department else UnitKind.PROJECT,
            department=unit.above.lower(),
            terms=UnitTerms(
                everywhere=QuotaTerms(
                    quota=AmountBounds(gpus=quota),
                    limit=AmountBounds(gpus=None if unit.limit >= UNLIMITED else unit.limit * 1000),
                    weight=unit.weight,
                    rank=unit.rank,
                    min_runtime=_seconds(unit.min_runtime),
                    min_runtime_within=_seconds(unit.min_runtime_within),
                )
            ),
        )

    def _pass_until(self, seconds: int) -> None:
        passed = int((self.world.now - self.world.cluster.started_at).total_seconds()) - LEASE_SECONDS
        pass_time(self.world, max(0, seconds - passed))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_the_coordinator_does_what_is_expected(scenario: Scenario) -> None:
    assert WholeCore(scenario).run() == scenario.runs


def _seconds(count: int) -> timedelta:
    return timedelta(seconds=count)
