"""Agents that say anything at any time: the coordinator goes on, its records stay consistent, its jobs still end."""

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.core.events import ExecutionsReported
from muster.domain.gangs.plan import Report, Stage
from muster.domain.ids import ExecutionId, JobId, NodeId
from muster.domain.jobs.failure import Exit
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.lifecycle import SuccessRule
from tests.builders import World, limits, report, spec
from tests.unit import output_values

SOON = limits(check_in=60, run=120)
SPECS = (spec(2, gpus=1, timeouts=SOON), spec(2, gpus=1, timeouts=SOON, success=SuccessRule.RANK0))
names = st.builds("j{:03}-1-{}".format, st.integers(1, 3), st.integers(0, 2)).map(ExecutionId)
exits = st.none() | st.builds(Exit, code=st.sampled_from([0, 1, 143, 255]))
reports = st.builds(
    report,
    names,
    st.sampled_from(Stage),
    exit=exits,
    failure=st.none(),
    address=st.sampled_from([None, "10.0.0.1"]),
    log_complete=st.booleans(),
    outputs=st.none() | output_values.execution_outputs,
)
nothing: st.SearchStrategy[list[Report]] = st.just([])
events: st.SearchStrategy[tuple[str, str, list[Report]]] = st.one_of(
    st.tuples(st.just("reports"), st.sampled_from("ab"), st.lists(reports, max_size=3)),
    st.tuples(st.just("connects"), st.sampled_from("ab"), st.lists(reports, max_size=3)),
    st.tuples(st.just("time"), st.sampled_from("ab"), nothing),
    st.tuples(st.just("stop"), st.sampled_from("ab"), nothing),
)


@given(st.lists(st.sampled_from(SPECS), max_size=3), st.lists(events, max_size=30))
@settings(max_examples=60)
def test_nothing_that_an_agent_says_breaks_the_coordinator(
    wanted: list[JobSpec], course: list[tuple[str, str, list[Report]]]
) -> None:
    w = World(("a", 1), ("b", 1))
    jobs = [w.submit(each) for each in wanted]
    for happening, node, said in course:
        match happening:
            case "reports":
                w.turn(ExecutionsReported(node=NodeId(node), reports=tuple(said)))
            case "connects":
                w.connect(node, reports=said)
            case "time":
                w.advance(25)
            case "stop" if jobs:
                w.stop(jobs[0])
    end_well(w, jobs)


def end_well(w: World, jobs: list[JobId]) -> None:
    """Agents that know of nothing, and whatever is asked of them is over already: then all jobs end."""
    for node in "ab":
        w.connect(node)
    for _ in jobs:
        for _ in range(14):
            w.advance(10)
            w.heartbeat("a")
            w.heartbeat("b")
        for member in list(w.cluster.executions.values()):
            if member.node is not None:
                told = report(member.id, Stage.STOPPED, log_complete=True)
                w.turn(ExecutionsReported(node=member.node, reports=(told,)))
    assert all(w.phase(job).ended for job in jobs)
