"""Which members of a gang the target of a command names."""

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.core.door.packets import Targets
from agent.core.door.targets import TargetRefused, ranks_of
from muster.domain.gangs.roster import Member, Roster
from muster.domain.ids import JobId, NodeId, execution_id
from muster.domain.jobs.job import Network

JOB = JobId("j")


def gang(*members: tuple[str, str, str]) -> Roster:
    """The roster of members, each with role, node and address."""
    return Roster.of(
        job=JOB,
        job_name="train",
        attempt=1,
        network=Network.HOST,
        members=[
            Member(
                rank=rank,
                execution=execution_id(JOB, 1, rank),
                role=role,
                node=NodeId(node),
                address=address,
                checked_in_at=datetime(2026, 11, 23, tzinfo=UTC),
            )
            for rank, (role, node, address) in enumerate(members)
        ],
    )


FOUR = gang(*(("worker", f"gpu-{rank}", f"10.0.0.{rank}") for rank in range(4)))
TIGHT = gang(("chief", "gpu-7", "10.0.0.7"), ("worker", "gpu-7", "10.0.0.7"), ("worker", "9", "fd00::9"))


@pytest.mark.parametrize(
    ("target", "rank"),
    [("0", 0), ("3", 3), ("003", 3), ("worker-1", 1), ("gpu-2", 2), ("10.0.0.3", 3)],
)
def test_a_member_has_a_rank_a_name_a_node_and_an_address(target: str, rank: int) -> None:
    assert ranks_of(FOUR, Targets.ONE, target) == (rank,)


@pytest.mark.parametrize(("target", "rank"), [("chief-0", 0), ("worker-0", 1), ("worker-1", 2), ("fd00::9", 2)])
def test_names_are_counted_within_a_role(target: str, rank: int) -> None:
    assert ranks_of(TIGHT, Targets.ONE, target) == (rank,)


def test_a_number_that_is_no_rank_may_be_the_name_of_a_node() -> None:
    assert ranks_of(TIGHT, Targets.ONE, "9") == (2,)


@pytest.mark.parametrize("target", ["gpu-7", "10.0.0.7"])
def test_a_node_with_several_members_is_no_answer(target: str) -> None:
    text = f"{target} has several members of this attempt (chief-0, worker-0); name one of them"
    assert ranks_of(TIGHT, Targets.ONE, target) == TargetRefused(text)


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        ("gpu-9", "gpu-9"),
        ("4", "4"),
        ("", "an empty name"),
        ("a\x1b[31m", "a\\x1b[31m"),
        ("x" * 100, "x" * 80 + "…"),
        ("9" * 5000, "9" * 80 + "…"),
    ],
)
def test_a_stranger_is_told_who_the_members_are(target: str, shown: str) -> None:
    text = f"{shown} is no member of this attempt (members: worker-0 … worker-3)"
    assert ranks_of(FOUR, Targets.ONE, target) == TargetRefused(text)


def test_members_of_many_roles_are_told_in_few_words() -> None:
    many = gang(*((f"role-{number}", f"node-{number}", f"10.0.0.{number}") for number in range(12)))
    refused = ranks_of(many, Targets.ONE, "x")
    assert isinstance(refused, TargetRefused)
    assert refused.text.endswith(
        "(members: role-0-0, role-1-0, role-2-0, role-3-0, role-4-0, role-5-0, role-6-0, role-7-0, …)"
    )


@pytest.mark.parametrize(("target", "ranks"), [("0,2-3", (0, 2, 3)), ("3,1", (1, 3)), ("1,1", (1,))])
def test_several_ranks_are_named_at_once(target: str, ranks: tuple[int, ...]) -> None:
    assert ranks_of(FOUR, Targets.RANKS, target) == ranks


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("2-4", "rank 4 is no member of this attempt (members: worker-0 … worker-3)"),
        ("a", "'a' is no list of ranks; write it like 0,2-3"),
        ("3-1", "'3-1' is no range of ranks; write it like 2-3"),
    ],
)
def test_ranks_that_nobody_has_are_refused(target: str, text: str) -> None:
    assert ranks_of(FOUR, Targets.RANKS, target) == TargetRefused(text)


def test_all_are_all_with_the_one_that_asks() -> None:
    assert ranks_of(FOUR, Targets.ALL, "") == (0, 1, 2, 3)


@given(targets=st.sampled_from(Targets), target=st.text() | st.from_regex(r"[0-9,-]+"))
def test_any_text_names_members_or_is_refused(targets: Targets, target: str) -> None:
    found = ranks_of(FOUR, targets, target)
    assert isinstance(found, TargetRefused) or (found and set(found) <= {0, 1, 2, 3})
