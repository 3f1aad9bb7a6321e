"""Every record comes back from JSON exactly as it was."""

import json
import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import Any, NewType, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.core.records import Attempt, Execution, Job, Node
from coordinator.store.codec import RecordT, decode, encode
from muster.domain.fleet.access import Permissions, Project
from muster.domain.fleet.attach_permission import Attachers, AttachPermission
from muster.domain.fleet.node import Inventory
from muster.domain.fleet.quota import Department
from muster.domain.ids import ExecutionId, GpuUuid, JobId, NodeId
from muster.domain.jobs.job import InlineFile, JobSpec, Role
from muster.domain.jobs.lifecycle import State

AT = datetime(2026, 11, 21, 8, 48, 50, 123456, tzinfo=UTC)

LEAVES: dict[object, st.SearchStrategy[Any]] = {
    str: st.text(max_size=12),
    int: st.integers(-(2**63), 2**63 - 1),
    bool: st.booleans(),
    bytes: st.binary(max_size=12),
    datetime: st.datetimes(timezones=st.just(UTC)),
    timedelta: st.timedeltas(),
    type(None): st.none(),
    ...: st.nothing(),  # as in tuple[int, ...]
}


def values(kind: object) -> st.SearchStrategy[Any]:
    """Any value of a type, with every optional field there or not."""
    if isinstance(kind, NewType):
        return values(kind.__supertype__)
    if isinstance(kind, type) and is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(kind, **{field.name: values(hints[field.name]) for field in fields(kind)})
    if isinstance(kind, type) and issubclass(kind, tuple):  # with names
        return st.builds(kind, *map(values, get_type_hints(kind).values()))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    return containers(kind, *map(values, get_args(kind))) if get_args(kind) else LEAVES[kind]


def containers(kind: object, first: st.SearchStrategy[Any], *rest: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    if get_origin(kind) in {Union, types.UnionType}:
        return st.one_of(first, *rest)
    if get_origin(kind) is tuple and ... not in get_args(kind):
        return st.tuples(first, *rest)
    if get_origin(kind) is tuple:
        return st.lists(first, max_size=2).map(tuple)
    if get_origin(kind) is frozenset:
        return st.frozensets(first, max_size=2)
    if get_origin(kind) is Mapping:
        return st.dictionaries(first, *rest, max_size=3)
    raise NotImplementedError(f"a record has a field of type {kind}: say here how to make one")


@pytest.mark.parametrize("kind", [Job, Attempt, Execution, Node, Project, Department])
@settings(max_examples=40)
@given(data=st.data())
def test_every_record_comes_back_exactly(kind: type[RecordT], data: st.DataObject) -> None:
    record: RecordT = data.draw(values(kind))

    back = decode(kind, encode(record))

    assert back == record
    assert type(back) is kind


def test_enums_tuples_and_times_come_back_as_what_they_were() -> None:
    execution = Execution(
        id=ExecutionId("j-1-0"),
        job=JobId("j"),
        attempt=1,
        rank=0,
        state=State.ARMED,
        times={State.QUEUED: AT, State.ARMED: AT + timedelta(microseconds=1)},
        gpus=(GpuUuid("GPU-1"),),
    )

    back = decode(Execution, encode(execution))

    assert [(type(state), at.utcoffset()) for state, at in back.times.items()] == [(State, timedelta(0))] * 2
    assert list(back.times) == [State.QUEUED, State.ARMED]
    assert type(back.gpus) is tuple


def test_a_body_is_json_that_people_can_read() -> None:
    node = Node(
        name=NodeId("node-ä"),
        identity="i",
        address="10.0.0.1",
        inventory=Inventory(cpus=2, memory=1),
        agent_version="0.1",
        joined_at=AT,
    )

    body = json.loads(encode(node))

    assert (body["name"], body["joined_at"], body["inventory"]["cpus"]) == ("node-ä", "2026-11-21T08:48:50.123456Z", 2)


def test_files_of_any_bytes_come_back() -> None:
    content = bytes(range(256))
    role = Role(files=(InlineFile(path="/f", content=content),))
    job = Job(id=JobId("j"), spec=JobSpec(name="n", roles=(role,)), sequence=1, submitted_at=AT)

    assert decode(Job, encode(job)).spec.roles[0].files[0].content == content


def test_a_field_that_was_not_there_yet_gets_its_default() -> None:
    job = Job(id=JobId("j"), spec=JobSpec(name="n", roles=(Role(),)), sequence=1, submitted_at=AT)
    old = json.loads(encode(job))
    del old["delete_when_ended"]
    del old["spec"]["packing"]

    assert decode(Job, json.dumps(old)) == job


@pytest.mark.parametrize("body", ["", "null", "{}", '{"job": 1}', "[]"])
def test_a_body_that_is_no_record_is_refused(body: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        decode(Attempt, body)


def test_a_project_that_was_stored_before_attaching_is_read_with_the_defaults() -> None:
    opened = Permissions(any_user=True, attach=AttachPermission(who=Attachers.NOBODY, files=False))
    project = Project(name="vision", created_at=AT, permissions=opened)
    old = json.loads(encode(project))
    del old["permissions"]["attach"]
    assert decode(Project, json.dumps(old)).permissions == Permissions(any_user=True)
    old["permissions"]["attach"] = {"who": "members"}
    assert decode(Project, json.dumps(old)).permissions.attach == AttachPermission(who=Attachers.MEMBERS)
