"""Every call is an operation of the one table, and every operation is asked of it where it is done."""

import re

import pytest
from google.protobuf.descriptor import FileDescriptor

from coordinator.rpc.calls import OPERATIONS, PUBLIC
from coordinator.service.rules import RULES, AccessScope, Audited
from muster.rpc.v1 import (
    agents_pb2,
    attachments_pb2,
    bundles_pb2,
    data_pb2,
    depot_pb2,
    events_pb2,
    feed_pb2,
    fleet_pb2,
    jobs_pb2,
    model_pb2,
    nodes_pb2,
    notifications_pb2,
    pools_pb2,
    presets_pb2,
    projects_pb2,
    telemetry_pb2,
    trust_pb2,
)
from tests.house.generate_stubs import PROTOS, ROOT

MODULES = (
    agents_pb2,
    attachments_pb2,
    depot_pb2,
    bundles_pb2,
    data_pb2,
    events_pb2,
    feed_pb2,
    fleet_pb2,
    jobs_pb2,
    model_pb2,
    nodes_pb2,
    notifications_pb2,
    pools_pb2,
    presets_pb2,
    projects_pb2,
    telemetry_pb2,
    trust_pb2,
)
OURS = "/muster.rpc.v1."
STRANGERS = {
    f"{OURS}JoinService/Authority",
    f"{OURS}JoinService/Join",
    f"{OURS}LoginService/Start",
    f"{OURS}LoginService/Finish",
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/List",
    "/grpc.health.v1.Health/Watch",
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
}
"""What whoever reaches the clients' port may call; a longer list is a decision."""


PEERS = {f"{OURS}PeerService/{call}" for call in ("Ask", "Pieces", "Run")}
"""What agents ask each other, and the coordinator never."""
RELAY = {f"{OURS}RelayService/Carry"}
"""What the relay serves to whoever shows it a ticket."""
DEPOT = {f"{OURS}DepotService/{call}" for call in ("Missing", "Put", "Get")}
"""What the depot serves to whoever shows it a ticket."""
NOTHING_TO_ASK = {"authority.pin"}
"""Operations that tell everybody the same."""
BEGUN = [
    name
    for path in sorted((ROOT / "coordinator" / "service").rglob("*.py"))
    for name in re.findall(r'\.begin\(caller, "([a-z_.]+)"', path.read_text())
]
"""Operations that a service begins."""


def calls(file: FileDescriptor) -> set[str]:
    return {
        f"/{service.full_name}/{method.name}"
        for service in file.services_by_name.values()
        for method in service.methods
    }


def test_every_proto_file_is_looked_at() -> None:
    assert {module.DESCRIPTOR.name for module in MODULES} == {
        str(path.relative_to(PROTOS)) for path in PROTOS.rglob("*.proto")
    }


def test_every_call_is_one_operation_and_nothing_else_is() -> None:
    ours = set().union(*(calls(module.DESCRIPTOR) for module in MODULES))
    assert ours - PEERS - RELAY - DEPOT == OPERATIONS.keys()


def test_every_operation_is_what_some_call_does() -> None:
    assert set(OPERATIONS.values()) == RULES.keys()


def test_strangers_may_call_what_is_listed_here_and_no_more() -> None:
    assert PUBLIC == STRANGERS


def test_orders_are_written_to_the_audit_log() -> None:
    silent = {
        name
        for name, rule in RULES.items()
        if rule.audited is Audited.REFUSALS and rule.scope is not AccessScope.PUBLIC
    }
    looks = {"deliver", "connect", "push_logs", "get", "list", "logs", "points", "watch", "why", "events", "history"}
    looks |= {"enrolled", "whoami", "show", "storage", "samples", "follow"}
    looks |= {"deliveries", "report"}  # what consoles tell is no order
    looks |= {"found"}  # what nodes tell of inputs, as they tell of executions
    assert {name for name in silent if name.partition(".")[2] not in looks} == set()


def test_an_operation_is_a_noun_and_a_verb() -> None:
    assert [name for name in RULES if not re.fullmatch(r"[a-z]+(_[a-z]+)?\.[a-z]+(_[a-z]+)?", name)] == []


@pytest.mark.parametrize("name", sorted(RULES))
def test_an_operation_is_begun_where_it_is_done(name: str) -> None:
    """An operation of clients begins in its service; the gate begins those of nodes."""
    begun = name in BEGUN
    assert begun == (RULES[name].scope is not AccessScope.NODE and name not in NOTHING_TO_ASK)


def test_no_service_begins_an_operation_that_is_not_in_the_table() -> None:
    assert set(BEGUN) - RULES.keys() == set()
