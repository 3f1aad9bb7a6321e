"""What an operation asks of its caller, and what the audit log says of it; no transport is involved."""

import asyncio

import pytest

from coordinator.service.rules import RULES, AccessScope
from coordinator.trust.caller import STRANGER
from muster.domain.errors import ConflictError, ExhaustedError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access
from tests.unit.coordinator.service.callers import HERE, Trusted, of_all, person


async def test_an_order_is_written_down_with_its_caller_its_target_and_where_it_came_from() -> None:
    trusted = Trusted()

    async with trusted.operations.begin(of_all(Access.OPERATOR), "nodes.cordon", "a"):
        pass

    (entry,) = trusted.store.entries
    assert (entry.who, entry.what, entry.target, entry.origin, entry.result) == (
        "root",
        "nodes.cordon",
        "a",
        HERE,
        "ok",
    )


async def test_an_order_that_fails_is_written_down_with_the_cause() -> None:
    trusted = Trusted()

    with pytest.raises(ConflictError):
        async with trusted.operations.begin(of_all(Access.OPERATOR), "nodes.cordon", "a"):
            raise ConflictError("no")

    assert await trusted.told() == [("root", "nodes.cordon", "a", "failed_precondition")]


@pytest.mark.parametrize(
    ("name", "result"),
    [
        ("nodes.cordon", "cancelled: its caller went away, and it may have been carried out"),
        ("secrets.list", "cancelled: its caller went away, and it may have been carried out"),
        ("nodes.label", None),
        ("nodes.get", None),
    ],
)
async def test_whoever_goes_away_during_an_order_leaves_a_trace_all_the_same(name: str, result: str | None) -> None:
    trusted = Trusted()

    with pytest.raises(asyncio.CancelledError):
        async with trusted.operations.begin(of_all(Access.ADMIN), name, "a"):
            raise asyncio.CancelledError

    assert await trusted.told() == ([] if result is None else [("root", name, "a", result)])


async def test_an_order_that_fails_by_a_fault_of_ours_is_written_down() -> None:
    trusted = Trusted()

    with pytest.raises(KeyError):
        async with trusted.operations.begin(of_all(Access.OPERATOR), "nodes.cordon", "a"):
            raise KeyError("a")

    assert await trusted.told() == [("root", "nodes.cordon", "a", "internal")]


async def test_an_order_of_which_no_trace_can_be_kept_is_not_confirmed() -> None:
    trusted = Trusted()
    trusted.store.wrong = "the disk is full"

    with pytest.raises(ExhaustedError, match="the audit log cannot be written"):
        async with trusted.operations.begin(of_all(Access.OPERATOR), "nodes.cordon", "a"):
            pass


async def test_who_lacks_access_to_every_project_is_refused_before_anything_is_done() -> None:
    trusted = Trusted()

    with pytest.raises(PermissionDeniedError, match="ada may not do that; it needs operator access to every project"):
        async with trusted.operations.begin(person(red=Access.ADMIN), "nodes.cordon", "a"):
            raise AssertionError

    assert await trusted.told() == [("ada", "nodes.cordon", "a", "needs operator (everywhere)")]


async def test_who_lacks_access_to_the_project_is_refused() -> None:
    trusted = Trusted()

    with pytest.raises(PermissionDeniedError, match="ada may not do that; it needs operator access to the project"):
        async with trusted.operations.begin(person(red=Access.MEMBER), "secrets.set", "red/db") as operation:
            operation.require_in("red")

    assert await trusted.told() == [("ada", "secrets.set", "red/db", "needs operator (project)")]


@pytest.mark.parametrize("project", ["blue", "nowhere"])
async def test_a_project_that_the_caller_must_not_know_of_is_as_if_it_were_not_there(project: str) -> None:
    trusted = Trusted()

    with pytest.raises(UnknownNameError, match=f"there is no project '{project}'"):
        async with trusted.operations.begin(person(red=Access.ADMIN), "secrets.list", project) as operation:
            operation.require_in(project)

    assert await trusted.told() == [("ada", "secrets.list", project, "not found among what the caller may see")]


async def test_what_outlives_its_project_is_asked_about_by_access_alone() -> None:
    trusted = Trusted()

    async with trusted.operations.begin(of_all(Access.ADMIN), "secrets.remove", "nowhere/db") as operation:
        operation.require_access("nowhere")
    with pytest.raises(PermissionDeniedError, match="it needs operator access to the project"):
        async with trusted.operations.begin(of_all(Access.VIEWER), "secrets.remove", "nowhere/db") as operation:
            operation.require_access("nowhere")
    with pytest.raises(UnknownNameError, match="there is no project 'nowhere'"):
        async with trusted.operations.begin(person(red=Access.ADMIN), "secrets.remove", "nowhere/db") as operation:
            operation.require_access("nowhere")


async def test_an_operation_about_a_project_that_asks_for_none_is_a_fault() -> None:
    trusted = Trusted()

    with pytest.raises(AssertionError, match=r"secrets\.list has not asked"):
        async with trusted.operations.begin(of_all(Access.ADMIN), "secrets.list"):
            pass


@pytest.mark.parametrize(
    "name", [name for name, rule in RULES.items() if rule.scope not in {AccessScope.PUBLIC, AccessScope.PROJECT}]
)
async def test_a_stranger_may_do_nothing_that_is_not_public(name: str) -> None:
    with pytest.raises(PermissionDeniedError, match="a stranger may not do that"):
        async with Trusted().operations.begin(STRANGER, name):
            raise AssertionError


async def test_a_look_that_is_allowed_leaves_no_trace() -> None:
    trusted = Trusted()

    async with trusted.operations.begin(person(red=Access.VIEWER), "nodes.list"):
        pass

    assert await trusted.entries() == []


async def test_a_look_that_fails_for_want_of_access_leaves_one() -> None:
    trusted = Trusted()

    with pytest.raises(PermissionDeniedError):
        async with trusted.operations.begin(person(), "nodes.list"):
            raise AssertionError

    assert await trusted.told() == [("ada", "nodes.list", "", "needs viewer (anywhere)")]


async def test_a_change_writes_its_own_entry_and_only_its_failure_is_added() -> None:
    trusted = Trusted()

    async with trusted.operations.begin(of_all(Access.OPERATOR), "nodes.label", "a") as operation:
        done = operation.done("rack=1")

    assert (done.what, done.target, done.result) == ("nodes.label", "a", "ok, rack=1")
    assert await trusted.entries() == []
