"""The limit that the terms of a project set for its jobs that nobody uses."""

from datetime import timedelta
from typing import Any

import pytest

from coordinator.views.jobs import job_view
from muster.domain.event import JobEventKind
from muster.domain.fleet.features import ALL_FEATURES, INTERACTIVE
from muster.domain.fleet.quota import QuotaTerms, QuotaUnit, UnitKind, UnitTerms
from muster.domain.gangs.plan import Stage
from muster.domain.ids import JobId
from muster.domain.jobs.interactive import NEVER_IDLE
from muster.domain.jobs.job import JobSpec, Timeouts
from muster.domain.jobs.lifecycle import JobPhase
from tests.builders import World, inventory, pass_time, report, spec

LIMIT = timedelta(minutes=20)
MINUTE = 60


def fleet(*, features: frozenset[str] = ALL_FEATURES) -> World:
    """A node in each of the pools `debug` and `long`."""
    w = World(projects=("default", "vision"))
    for pool in ("debug", "long"):
        w.connect(pool, inventory(pool, 2, labels={"pool": pool}), features=features)
    return w


def of_vision(**fields: Any) -> JobSpec:
    return spec(1, project="vision", **fields)


def events(w: World, job: JobId) -> list[str]:
    return [event.text for event in w.store.events(job, 0, 1000) if event.kind is JobEventKind.IDLE]


def test_a_job_that_says_nothing_of_it_is_stopped_after_the_limit_of_its_project_and_people_hear_of_it_before() -> None:
    w = fleet()
    w.promise("vision", idle=LIMIT)
    job = w.running(of_vision())
    other = w.running(spec(1))

    pass_time(w, 16 * MINUTE)
    assert events(w, job) == [
        "nobody uses it; it is stopped in 300.0 s unless somebody does (idle of project vision: 20m)"
    ]
    assert "unless it is used before (idle of project vision: 20m)" in job_view(w.cluster, job).summary
    pass_time(w, 5 * MINUTE)

    assert job_view(w.cluster, job).summary == "stopping: idle for 20m"
    assert w.phase(other) is JobPhase.RUNNING


def test_use_begins_the_time_anew_as_with_a_limit_of_the_job() -> None:
    w = fleet()
    w.promise("vision", idle=LIMIT)
    job = w.running(of_vision())

    pass_time(w, 19 * MINUTE)
    w.tell(job, 0, Stage.RUNNING, used_at=w.now)
    pass_time(w, 19 * MINUTE)

    assert w.phase(job) is JobPhase.RUNNING


@pytest.mark.parametrize("said", [timedelta(hours=2), NEVER_IDLE])
def test_what_the_job_says_goes_before_what_its_project_says(said: timedelta) -> None:
    w = fleet()
    w.promise("vision", idle=LIMIT)
    job = w.running(of_vision(timeouts=Timeouts(idle=said)))

    pass_time(w, 60 * MINUTE)

    assert w.phase(job) is JobPhase.RUNNING


def test_the_agent_is_told_of_the_limit_so_that_it_tells_of_use() -> None:
    w = fleet()
    w.promise("vision", idle=LIMIT)
    job = w.running(of_vision())

    node = w.rank(job, 0).node
    assert node is not None
    assert w.followers[node].assignments[w.rank(job, 0).id].idle == LIMIT


def test_a_department_says_it_for_its_projects_and_each_may_say_something_else() -> None:
    w = fleet()
    department = QuotaUnit(
        name="research", kind=UnitKind.DEPARTMENT, terms=UnitTerms(everywhere=QuotaTerms(idle=LIMIT))
    )
    w.change_units(department)
    w.promise("vision", department="research")
    inherits = w.running(of_vision())
    w.promise("vision", department="research", idle=NEVER_IDLE)
    never = w.running(of_vision())

    pass_time(w, 60 * MINUTE)

    assert (w.phase(inherits), w.phase(never)) == (JobPhase.STOPPING, JobPhase.RUNNING)


def test_it_may_be_other_in_one_pool_and_counts_where_the_job_was_placed() -> None:
    w = fleet()
    everywhere, debug = QuotaTerms(idle=LIMIT), QuotaTerms(idle=NEVER_IDLE)
    w.change_units(
        QuotaUnit(name="vision", kind=UnitKind.PROJECT, terms=UnitTerms(everywhere=everywhere, pools={"debug": debug}))
    )
    here = w.running(of_vision(node_labels={"pool": "debug"}))
    there = w.running(of_vision(node_labels={"pool": "long"}))

    pass_time(w, 60 * MINUTE)

    assert (w.phase(here), w.phase(there)) == (JobPhase.RUNNING, JobPhase.STOPPING)


@pytest.mark.parametrize("restarts", [False, True], ids=["at one go", "over a restart of the coordinator"])
def test_a_job_keeps_the_limit_with_which_it_was_placed(restarts: bool) -> None:
    w = fleet()
    early = w.running(of_vision(node_labels={"pool": "debug"}))
    w.promise("vision", idle=LIMIT)
    limited = w.running(of_vision(node_labels={"pool": "long"}))
    w.promise("vision")
    if restarts:
        reports = {w.rank(each, 0).node: report(w.rank(each, 0).id, Stage.RUNNING) for each in (early, limited)}
        w.restart()
        for pool in ("debug", "long"):
            w.connect(pool, reports=[each for node, each in reports.items() if node == pool])

    pass_time(w, 60 * MINUTE)

    assert (w.phase(early), w.phase(limited)) == (JobPhase.RUNNING, JobPhase.STOPPING)


def test_nobody_is_stopped_on_a_node_whose_agent_does_not_tell_of_use() -> None:
    w = fleet(features=ALL_FEATURES - {INTERACTIVE})
    w.promise("vision", idle=LIMIT)
    job = w.running(of_vision())

    pass_time(w, 60 * MINUTE)

    assert w.phase(job) is JobPhase.RUNNING


def test_a_limit_that_leaves_people_no_time_is_refused() -> None:
    terms = UnitTerms(everywhere=QuotaTerms(idle=timedelta(seconds=9)))
    assert list(terms.faults()) == ["idle must be 0 or at least 10s, not 9s"]
    for allowed in (NEVER_IDLE, timedelta(seconds=10)):
        assert not list(QuotaTerms(idle=allowed).faults())
