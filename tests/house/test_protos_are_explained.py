"""Every message, field, enum, value, service and call of the wire format has a comment."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest
from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)
from grpc_tools import protoc

from tests.house.generate_stubs import PROTOS

Place: TypeAlias = tuple[int, ...]
"""Where something stands in a file, as protoc's source locations count it: field number, index, field number, …"""

MESSAGES, ENUMS, SERVICES = 4, 5, 6
FIELDS, NESTED_MESSAGES, NESTED_ENUMS, ONEOFS = 2, 3, 4, 8
MEMBERS = 2
"""Where the members stand: an enum's values, a service's calls."""


def test_everything_in_the_protos_has_a_comment(tmp_path: Path) -> None:
    silent = [
        f"{file.name}: {name}"
        for file in _parsed(tmp_path).file
        for place, name in _everything(file)
        if place not in _explained(file)
    ]
    assert not silent


def test_a_field_without_a_comment_would_be_found(tmp_path: Path) -> None:
    (tmp_path / "bad.proto").write_text('syntax = "proto3";\n// Said.\nmessage A {\n  string b = 1;\n}\n')
    (file,) = _parsed(tmp_path, tmp_path).file
    assert [name for place, name in _everything(file) if place not in _explained(file)] == ["A.b"]


def _parsed(scratch: Path, protos: Path = PROTOS) -> FileDescriptorSet:
    out = scratch / "protos.bin"
    files = [str(path) for path in sorted(protos.rglob("*.proto"))]
    include = str(Path(protoc.__file__).with_name("_proto"))
    arguments = [f"-I{protos}", f"-I{include}", "--include_source_info", f"--descriptor_set_out={out}", *files]
    if protoc.main(["protoc", *arguments]) != 0:
        pytest.fail("protoc refuses the proto files")
    return FileDescriptorSet.FromString(out.read_bytes())


def _explained(file: FileDescriptorProto) -> set[Place]:
    return {tuple(at.path) for at in file.source_code_info.location if at.leading_comments.strip()}


def _everything(file: FileDescriptorProto) -> Iterator[tuple[Place, str]]:
    for index, message in enumerate(file.message_type):
        yield from _in_message((MESSAGES, index), message, message.name)
    for index, enum in enumerate(file.enum_type):
        yield from _with_members((ENUMS, index), enum.name, _names(enum))
    for index, service in enumerate(file.service):
        yield from _with_members((SERVICES, index), service.name, _names(service))


def _in_message(place: Place, message: DescriptorProto, name: str) -> Iterator[tuple[Place, str]]:
    if message.options.map_entry:
        return
    yield place, name
    for index, field in enumerate(message.field):
        yield (*place, FIELDS, index), f"{name}.{field.name}"
    # An `optional` field has a oneof of its own that nobody wrote.
    written = len(message.oneof_decl) - sum(field.proto3_optional for field in message.field)
    for index, oneof in enumerate(message.oneof_decl[:written]):
        yield (*place, ONEOFS, index), f"{name}.{oneof.name}"
    for index, nested in enumerate(message.nested_type):
        yield from _in_message((*place, NESTED_MESSAGES, index), nested, f"{name}.{nested.name}")
    for index, enum in enumerate(message.enum_type):
        yield from _with_members((*place, NESTED_ENUMS, index), f"{name}.{enum.name}", _names(enum))


def _with_members(place: Place, name: str, members: Sequence[str]) -> Iterator[tuple[Place, str]]:
    yield place, name
    for index, member in enumerate(members):
        yield (*place, MEMBERS, index), f"{name}.{member}"


def _names(parent: EnumDescriptorProto | ServiceDescriptorProto) -> list[str]:
    members = parent.value if isinstance(parent, EnumDescriptorProto) else parent.method
    return [member.name for member in members]
