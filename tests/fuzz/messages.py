"""Protobuf messages with any content, and messages that were valid before something was changed in them.

They are made from a seed by a generator of their own and not drawn field by field: that is ten times as fast, and a
message that is found says enough when it is printed.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import strategies as st

DEPTH = 6
"""Beyond it nothing is nested."""

TEXTS = (
    *(
        "",
        "a",
        "worker",
        "worker-0",
        "x-1-0",
        "node.example.org",
        "10.0.0.1",
        "::1",
        "host",
        "bridge",
        "docker",
        "process",
    ),
    *("running", "queued", "failed", "stdout", "stderr", "all", "rank0", "keep", "stop", "missing", "always", "pack"),
    *(
        "user",
        "service",
        "admin",
        "viewer",
        "*",
        "default",
        "generic",
        "registry",
        "nofile",
        "sys_ptrace",
        "137",
        "1-255",
    ),
    *(
        "/",
        "/x",
        "../../etc/passwd",
        "a=b",
        "=",
        " ",
        "\0",
        "a\nb",
        "\u202e",
        "ä",
        "\U0001f600",
        "%s%n",
        "{}",
        "-1",
        "1" * 400,
    ),
    *("0-99999999999999", "1," * 300, "a" * 64, "a" * 254, "a" * 2000, "A" * 20_000),
)
NUMBERS = (0, 1, 2, 3, 7, 8, 9, 80, 255, 256, 1000, 1024, 10_000, 65_535, 65_536, 10**6, 10**9, 10**11, 10**12, 10**13)
_RANGES = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_ENUM: (0, 2**31 - 1),
}
_FLOATS = (0.0, -0.0, 1.0, -1.0, 1e300, 5e-324, float("inf"), float("-inf"), float("nan"))

seeds = st.integers(0, 2**64 - 1)


def anything(kind: type[Message], seed: int) -> Message:
    """A message of that kind with any content."""
    return _filled(kind(), Random(seed), DEPTH)


def damaged(message: Message, seed: int) -> Message:
    """The message with a few changes, anywhere in it."""
    chance = Random(seed)
    for _ in range(chance.randint(1, 4)):
        _change(message, chance)
    return message


def _filled(message: Message, chance: Random, depth: int) -> Message:
    for field in _fields(message):
        if chance.random() < 0.7:
            _set(message, field, chance, depth)
    return message


def _fields(message: Message) -> list[FieldDescriptor]:
    return [field for field in message.DESCRIPTOR.fields if isinstance(field, FieldDescriptor)]  # each of them is one


def _set(message: Message, field: FieldDescriptor, chance: Random, depth: int) -> None:
    """Give one field something."""
    if _is_map(field):
        _fill_map(getattr(message, field.name), field, chance, depth)
    elif field.is_repeated:
        _fill_list(getattr(message, field.name), field, chance, depth)
    elif field.message_type is None:
        setattr(message, field.name, _scalar(field, chance))
    elif depth:
        _filled(getattr(message, field.name), chance, depth - 1)
        getattr(message, field.name).SetInParent()


def _fill_list(values: Any, field: FieldDescriptor, chance: Random, depth: int) -> None:
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        if field.message_type is None:
            values.append(_scalar(field, chance))
        elif depth:
            _filled(values.add(), chance, depth - 1)


def _fill_map(values: Any, field: FieldDescriptor, chance: Random, depth: int) -> None:
    assert field.message_type is not None
    key, value = field.message_type.fields_by_name["key"], field.message_type.fields_by_name["value"]
    for _ in range(chance.choice((0, 1, 1, 2, 3))):
        if value.message_type is None:
            values[_scalar(key, chance)] = _scalar(value, chance)
        elif depth:
            _filled(values[_scalar(key, chance)], chance, depth - 1)


def _change(message: Message, chance: Random) -> None:
    """Go down to some part of it, and set, clear or repeat something there."""
    while (inner := _inner(message)) and chance.random() < 0.75:
        message = chance.choice(inner)
    fields = _fields(message)
    if not fields:
        return
    field = chance.choice(fields)
    how: Callable[[], object] = chance.choice(
        (
            lambda: message.ClearField(field.name),
            lambda: _set(message, field, chance, DEPTH),
            lambda: _set(message, field, chance, DEPTH),
            lambda: _twice(message, field),
        )
    )
    how()


def _inner(message: Message) -> list[Message]:
    found: list[Message] = []
    for field, value in message.ListFields():
        if _is_map(field):
            found += [each for each in value.values() if isinstance(each, Message)]
        elif field.message_type is not None:
            found += value if field.is_repeated else [value]
    return found


def _twice(message: Message, field: FieldDescriptor) -> None:
    if field.is_repeated and not _is_map(field):
        values = getattr(message, field.name)
        values.extend(list(values))


def _is_map(field: FieldDescriptor) -> bool:
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def _scalar(field: FieldDescriptor, chance: Random) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_STRING:
        if field.type == FieldDescriptor.TYPE_BYTES:
            return chance.randbytes(chance.choice((0, 1, 16, 32, 300)))
        return chance.choice(TEXTS) if chance.random() < 0.9 else _text(chance)
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        return chance.random() < 0.5
    if kind in {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}:
        return chance.choice(_FLOATS)
    low, high = _RANGES[kind]
    if chance.random() < 0.7:
        return min(max(chance.choice(NUMBERS) * chance.choice((1, 1, 1, -1)), low), high)
    return chance.choice((low, high, high // 2, chance.randint(low, high)))


def _text(chance: Random) -> str:
    points = (chance.choice((0x7F, 0x3FF, 0xD7FF)) for _ in range(chance.randint(0, 12)))
    return "".join(chr(chance.randint(0, most)) for most in points)
