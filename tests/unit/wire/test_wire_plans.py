"""Plans on their way: each role once, in messages of a moderate size, and a fault concerns one execution alone."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muster.domain.gangs.plan import Assignment, Desired, Goal, Plan, Unreadable
from muster.domain.gangs.roster import Member, Roster
from muster.domain.ids import AttemptId, ExecutionId, JobId, NodeId
from muster.domain.jobs.job import InlineFile, Network, Role
from muster.rpc.v1 import agents_pb2 as pb
from muster.wire import PlanReader, PlanWriter, WireError, role_to_wire
from muster.wire.gangs.plans import PART
from tests.unit import wire_values as values

MIB = 1 << 20
NOW = datetime(2026, 11, 22, tzinfo=UTC)


def with_files(size: int, name: str = "worker") -> Role:
    return Role(name=name, command=("true",), files=(InlineFile(path="data", content=bytes(size)),))


def gang(size: int, role: Role, job: str = "j") -> tuple[Desired, ...]:
    """The lines of a gang of which one node has all executions."""
    return tuple(
        Desired(
            execution=ExecutionId(f"{job}-1-{rank}"),
            goal=Goal.PREPARE,
            assignment=Assignment(
                execution=ExecutionId(f"{job}-1-{rank}"),
                job=JobId(job),
                job_name="train",
                attempt=1,
                rank=rank,
                world_size=size,
                local_rank=rank,
                local_world_size=size,
                node_rank=0,
                node_count=1,
                role=role,
                network=Network.HOST,
            ),
        )
        for rank in range(size)
    )


def roster(job: str = "j", size: int = 2, address: str = "10.0.0.1") -> Roster:
    members = (
        Member(
            rank=rank,
            execution=ExecutionId(f"{job}-1-{rank}"),
            role="worker",
            node=NodeId("n"),
            address=address,
            checked_in_at=NOW,
        )
        for rank in range(size)
    )
    return Roster.of(job=JobId(job), job_name="train", attempt=1, network=Network.HOST, members=members)


def messages(plan: Plan, writer: PlanWriter | None = None) -> list[pb.Plan]:
    """The messages of a plan as they travel."""
    parts = (writer or PlanWriter()).parts(plan)
    return [pb.Plan.FromString(part.message.SerializeToString()) for part in parts]


def read(*sent: pb.Plan) -> list[Plan | None]:
    return read_all(PlanReader(), list(sent))


def read_all(reader: PlanReader, sent: list[pb.Plan]) -> list[Plan | None]:
    return [reader.take(message) for message in sent]


def test_a_role_travels_once_however_many_executions_have_it() -> None:
    plan = Plan(revision=1, desired=gang(80, with_files(MIB)))

    (sent,) = messages(plan)

    assert sent.ByteSize() < 1.1 * MIB
    assert read(sent) == [plan]


def test_roles_of_many_jobs_come_in_messages_of_a_moderate_size_and_count_only_together() -> None:
    lines = [line for job in range(30) for line in gang(2, with_files(MIB), f"j{job}")]
    plan = Plan(revision=7, desired=tuple(lines), removed=(ExecutionId("gone-1-0"),), rosters=(roster(),))

    sent = messages(plan)

    assert len(sent) > 7
    assert max(message.ByteSize() for message in sent) <= PART + 1024
    assert read(*sent) == [None] * (len(sent) - 1) + [plan]


@settings(max_examples=30)
@given(plan=values.plans(), part=st.integers(1, 600))
def test_a_plan_comes_back_as_it_was_in_messages_of_any_size(plan: Plan, part: int) -> None:
    taken = read(*messages(plan, PlanWriter(part=part)))

    assert taken[-1] == plan
    assert not any(taken[:-1])


@settings(max_examples=30)
@given(plan=values.plans(), lost=st.integers(0, 100))
def test_of_a_plan_that_lacks_a_message_nothing_counts(plan: Plan, lost: int) -> None:
    """What a whole plan does not list is cleared away, so a part must never pass for the whole."""
    sent = messages(plan, PlanWriter(part=1))
    del sent[lost % len(sent)]
    reader = PlanReader()

    for message in sent:
        try:
            assert reader.take(message) is None
        except WireError as error:
            assert error.field == "part"  # noqa: PT017 - it may come with any of them

    following = Plan(revision=1)
    assert reader.take(*messages(following)) == following


def test_messages_of_two_plans_are_not_taken_for_one() -> None:
    first, second = (messages(Plan(revision=n, desired=gang(2, with_files(9))), PlanWriter(part=1)) for n in (1, 2))
    reader = PlanReader()
    assert reader.take(first[0]) is None

    with pytest.raises(WireError, match=r"Plan\.revision is not the same in all messages of the plan"):
        read_all(reader, second[1:])


def test_a_line_that_cannot_be_read_concerns_its_execution_alone() -> None:
    plan = Plan(revision=1, desired=(*gang(1, with_files(1)), *gang(1, with_files(2), "other")))
    (sent,) = messages(plan)
    sent.desired[1].assignment.network = "pigeons"

    (taken,) = read(sent)

    assert taken == replace(
        plan,
        desired=plan.desired[:1],
        unreadable=(
            Unreadable(
                execution=ExecutionId("other-1-0"),
                goal=Goal.PREPARE,
                reason="Assignment.network is 'pigeons'; known are host, bridge",
            ),
        ),
    )


@pytest.mark.parametrize(("key", "role"), [("0", b"\xff"), ("0", b""), ("unknown", b"\x0a\x01w")])
def test_a_role_that_cannot_be_read_or_is_missing_concerns_its_executions_alone(key: str, role: bytes) -> None:
    plan = Plan(revision=1, desired=(*gang(2, with_files(1)), *gang(1, with_files(2), "other")))
    (sent,) = messages(plan)
    sent.roles[0].key, sent.roles[0].role = key, role

    (taken,) = read(sent)

    assert taken is not None
    assert taken.desired == plan.desired[2:]
    assert [line.execution for line in taken.unreadable] == ["j-1-0", "j-1-1"]


def test_what_is_too_large_for_any_message_is_named_and_stopped_and_the_rest_goes() -> None:
    small = gang(2, with_files(10), "small")
    plan = Plan(revision=3, desired=(*gang(2, with_files(MIB), "large"), *small))
    writer = PlanWriter(most=MIB)

    sendable, faults = writer.sendable(plan)

    size = role_to_wire(with_files(MIB)).ByteSize()
    assert faults == {("large", 1): f"its role worker has {size} bytes, and {MIB} fit into a message to its nodes"}
    stopped = tuple(Desired(execution=ExecutionId(f"large-1-{rank}"), goal=Goal.STOP) for rank in range(2))
    assert sendable == replace(plan, desired=(*stopped, *small))
    assert read(*messages(sendable, writer)) == [sendable]


def test_a_roster_that_no_agent_would_take_is_not_sent() -> None:
    large = roster("large", size=4, address="1" * 20 * MIB)
    plan = Plan(revision=3, desired=gang(2, with_files(10)), rosters=(roster(), large))

    sendable, faults = PlanWriter().sendable(plan)

    assert list(faults) == [("large", 1)]
    assert faults[AttemptId(JobId("large"), 1)].startswith("the roster of its 4 executions has 83886")
    assert sendable.rosters == (roster(),)


def test_what_can_be_sent_is_sent_as_it_is() -> None:
    plan = Plan(revision=3, desired=gang(2, with_files(10)), rosters=(roster(),))

    assert PlanWriter().sendable(plan) == (plan, {})


def test_roles_and_rosters_look_like_messages_on_the_wire() -> None:
    data = bytes([1, 2, 3])
    assert pb.PlanRole(role=data).SerializeToString() == bytes([2 << 3 | 2, len(data)]) + data
    assert pb.Plan(rosters=[data]).SerializeToString() == bytes([5 << 3 | 2, len(data)]) + data
