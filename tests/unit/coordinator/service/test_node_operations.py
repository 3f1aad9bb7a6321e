"""What callers may do with nodes, and what they see of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from coordinator.engine.engine import Engine
from coordinator.service.nodes import REASON, NodeOperations
from coordinator.store.records.memory import MemoryStore
from coordinator.trust.caller import LOCAL
from muster.domain.errors import ConflictError, InvalidJobError, PermissionDeniedError, UnknownNameError
from muster.domain.fleet.access import Access
from muster.domain.ids import NodeId
from tests.unit.coordinator.engines import A, connection, engine_on, submission, working
from tests.unit.coordinator.service.callers import Trusted, of_all, person

B = NodeId("b")


@asynccontextmanager
async def fleet(*nodes: NodeId) -> AsyncIterator[tuple[Trusted, Engine, NodeOperations]]:
    """A fleet of these nodes, each with a GPU, and whoever looks after them."""
    trusted, engine = Trusted(), engine_on(MemoryStore())
    async with working(engine):
        for node in nodes:
            await engine.apply(connection(engine.streams.open(), node, node))
        yield trusted, engine, NodeOperations(trusted.operations, engine, trusted.registry.joined)


async def test_pages_of_nodes_follow_each_other() -> None:
    async with fleet(A, B) as (_, _, nodes):
        first = await nodes.list(of_all(Access.VIEWER), size=1)
        second = await nodes.list(of_all(Access.VIEWER), page=first.next_page, size=1)

    assert [each.name for each in first.nodes] == [A]
    assert ([each.name for each in second.nodes], second.next_page) == ([B], "")


async def test_a_page_that_nobody_was_told_of_is_refused() -> None:
    async with fleet() as (_, _, nodes):
        with pytest.raises(InvalidJobError, match="is not a page token"):
            await nodes.list(of_all(Access.VIEWER), page="-1")


async def test_who_sees_some_projects_sees_every_node_and_only_executions_of_these() -> None:
    async with fleet(A) as (_, engine, nodes):
        await engine.apply(submission(project="red"))
        everything = await nodes.get(of_all(Access.VIEWER), A)
        red = await nodes.get(person(red=Access.VIEWER), A)
        blue = await nodes.get(person(blue=Access.VIEWER), A)

    assert everything.executions == red.executions == ("j-1-0",)
    assert (blue.name, blue.executions) == (A, ())


async def test_a_node_is_cordoned_and_open_again() -> None:
    async with fleet(A) as (trusted, _, nodes):
        closed = await nodes.cordon(of_all(Access.OPERATOR), A, reason="a new fan")
        opened = await nodes.uncordon(of_all(Access.OPERATOR), A)

    assert closed.cordon is not None
    assert (closed.cordon.reason, opened.cordon) == ("a new fan", None)
    assert await trusted.told() == [("root", "nodes.cordon", "a", "ok"), ("root", "nodes.uncordon", "a", "ok")]


async def test_a_reason_that_is_too_long_is_refused() -> None:
    async with fleet(A) as (_, _, nodes):
        with pytest.raises(InvalidJobError, match="201 characters; 200 are kept"):
            await nodes.cordon(of_all(Access.OPERATOR), A, reason="x" * (REASON + 1))


async def test_members_of_a_project_close_no_nodes() -> None:
    async with fleet(A) as (_, _, nodes):
        for order in (nodes.cordon, nodes.uncordon, nodes.remove):
            with pytest.raises(PermissionDeniedError):
                await order(person(red=Access.ADMIN), A)
        view = await nodes.get(of_all(Access.VIEWER), A)

    assert view.cordon is None


async def test_an_order_about_a_node_that_is_not_there_is_refused_and_written_down() -> None:
    async with fleet() as (trusted, _, nodes):
        with pytest.raises(UnknownNameError):
            await nodes.remove(of_all(Access.OPERATOR), A)

    assert await trusted.told() == [("root", "nodes.remove", "a", "not_found")]


async def test_nodes_of_one_machine_keep_the_labels_of_their_agent() -> None:
    async with fleet(A) as (_, _, nodes):
        with pytest.raises(ConflictError, match="with which their agent was started"):
            await nodes.label(LOCAL, A, {"rack": "1"}, ())
