"""Policies: who sets and sees them, and that every way by which a job comes in, or is changed, keeps to them."""

import pytest

from coordinator.service.archive import Archive, StoredPast
from coordinator.service.jobs import JobOperations
from coordinator.service.queueing.job_orders import JobOrders
from coordinator.service.queueing.policies import PolicyOperations
from coordinator.service.submitting import Submission, SubmitDesk
from coordinator.store.records.memory import MemoryStore
from coordinator.trust.policies import Policies
from muster.domain.errors import InvalidJobError, JobsRefusedError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access, Permissions
from muster.domain.fleet.policies.policy import PolicyRule
from muster.domain.jobs.queueing.change import JobChange
from tests.builders import spec
from tests.unit.coordinator.engines import engine_on, working
from tests.unit.coordinator.service.callers import Trusted, of_all, person, secrets_in_memory

ADMIN, RED = of_all(Access.ADMIN), person("red", red=Access.ADMIN)
SMALL = {"workers": PolicyRule(max="2")}
LOW = {"priority": PolicyRule(max="5")}


async def test_only_admins_of_the_fleet_set_policies_and_the_audit_log_says_which_keys() -> None:
    trusted = Trusted()
    policies = PolicyOperations(trusted.operations, Policies(trusted.store, trusted.registry.projects))

    with pytest.raises(PermissionDeniedError):
        await policies.set(RED, "red", SMALL)
    with pytest.raises(InvalidJobError, match='"worker" is no key of a job file; did you mean workers'):
        await policies.set(ADMIN, "red", {"worker": PolicyRule(max="2")})
    await policies.set(ADMIN, "*", SMALL)
    await policies.set(ADMIN, "red", LOW)

    assert [(each.project, each.rules) for each in await policies.get(RED, "red")] == [("*", SMALL), ("red", LOW)]
    with pytest.raises(UnknownNameError, match="no project 'blue'"):
        await policies.get(RED, "blue")
    assert [each for each in await trusted.told() if each[-1].startswith("ok")] == [
        (ADMIN.name, "policies.set", "*", "ok, +workers"),
        (ADMIN.name, "policies.set", "red", "ok, +priority"),
    ]


async def test_jobs_that_are_submitted_alone_or_together_or_changed_keep_the_policies_of_fleet_and_project() -> None:
    trusted, engine = Trusted(), engine_on(MemoryStore())
    kept = Policies(trusted.store, trusted.registry.projects)
    policies = PolicyOperations(trusted.operations, kept)
    desk = SubmitDesk(lambda _: Permissions(), secrets_in_memory(trusted.registry.projects), policies_of=kept.that_hold)
    async with working(engine):
        archive = Archive(logs=None, points=None, past=StoredPast(MemoryStore()))  # type: ignore[arg-type]  # unused
        jobs = JobOperations(trusted.operations, engine, desk, archive)
        orders = JobOrders(trusted.operations, engine, kept.that_hold)
        old = await jobs.submit(RED, Submission(spec=spec(3, project="red", priority=9), queue_anyway=True))
        await policies.set(ADMIN, "*", SMALL)
        await policies.set(ADMIN, "red", LOW)

        with pytest.raises(InvalidJobError) as refused:
            await jobs.submit(RED, Submission(spec=spec(3, project="red", priority=9), queue_anyway=True))
        with pytest.raises(JobsRefusedError, match="policy of the fleet"):
            await jobs.submit_many(RED, [Submission(spec=spec(3, project="red"), queue_anyway=True)], 1)
        with pytest.raises(InvalidJobError, match="priority: 10 is not allowed"):
            await orders.change(RED, old.id, JobChange(priority=10))
        changed = await orders.change(RED, old.id, JobChange(priority=5))
        taken = await jobs.submit(RED, Submission(spec=spec(2, project="red", priority=5), queue_anyway=True))

    assert str(refused.value) == (
        "roles[0].count: 3 is not allowed; at most 2 is (rule max of the policy of the fleet)\n"
        "priority: 9 is not allowed; at most 5 is (rule max of the policy of project red)"
    )
    assert (changed.spec.priority, taken.spec.size) == (5, 2)
