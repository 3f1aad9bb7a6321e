"""The one table of what each call asks of its caller names every call of every service, and none that is not there."""

from google.protobuf.descriptor import FileDescriptor

from coordinator.rpc.calls import OPERATIONS
from coordinator.rpc.rules import RULES, Audited, CallScope
from coordinator.service import rules
from muster.rpc.v1 import agents_pb2, bundles_pb2, jobs_pb2, model_pb2, nodes_pb2, trust_pb2
from tests.house.generate_stubs import PROTOS

MODULES = (agents_pb2, bundles_pb2, jobs_pb2, model_pb2, nodes_pb2, trust_pb2)
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


def test_every_call_is_in_the_table_and_nothing_else() -> None:
    ours = {call for call in RULES if call.startswith(OURS)}
    assert ours | OPERATIONS.keys() == set().union(*(calls(module.DESCRIPTOR) for module in MODULES))


def test_strangers_may_call_what_is_listed_here_and_no_more() -> None:
    assert {call for call, rule in RULES.items() if rule.scope is CallScope.PUBLIC} == STRANGERS


def test_orders_are_written_to_the_audit_log() -> None:
    silent = {call for call, rule in RULES.items() if rule.record is Audited.REFUSALS}
    changing = {"Submit", "Stop", "Delete", "Add", "Remove", "Create", "Revoke", "Grant", "Renew"}
    assert {call for call in silent if any(call.rpartition("/")[2].startswith(word) for word in changing)} == set()


def test_every_operation_is_what_some_call_does() -> None:
    assert set(OPERATIONS.values()) == rules.RULES.keys()
