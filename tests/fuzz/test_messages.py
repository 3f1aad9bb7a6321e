"""Whatever a peer sends is a value that comes back from the wire as it was, or a WireError."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import Any, get_type_hints

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from muster import wire
from muster.wire import WireError
from tests.fuzz.effort import fuzzed, fuzzed_less
from tests.fuzz.messages import anything, damaged, seeds
from tests.unit.wire_pairs import PAIRS

Decoder = Callable[[Message], Any]


def _decoders() -> dict[str, tuple[Decoder, type[Message], Callable[[Any], Message] | None]]:
    """Decoders by name: what makes a value of a message, of which message, and the way back where there is one."""
    found: dict[str, tuple[Decoder, type[Message], Callable[[Any], Message] | None]] = {}
    for module in pkgutil.walk_packages(wire.__path__, f"{wire.__name__}."):
        functions = dict(inspect.getmembers(importlib.import_module(module.name), inspect.isfunction))
        for name, function in functions.items():
            kind = get_type_hints(function).get("message")
            if name.endswith("_from_wire") and inspect.isclass(kind) and issubclass(kind, Message):
                back = functions.get(name.replace("_from_wire", "_to_wire"))
                found[name.strip("_").removesuffix("_from_wire")] = (function, kind, back)
    return found


DECODERS = _decoders()


def test_all_decoders_are_found() -> None:
    assert {"job_spec", "plan", "report", "inventory", "permissions", "myself"} < DECODERS.keys()
    assert {pair.name for pair in PAIRS} <= DECODERS.keys()


@pytest.mark.parametrize("name", DECODERS)
@fuzzed
@given(seed=seeds)
def test_a_message_with_any_content_is_a_value_or_a_wire_error(name: str, seed: int) -> None:
    _receive(name, anything(DECODERS[name][1], seed))


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair.name)
@fuzzed_less
@given(data=st.data(), seed=seeds)
def test_a_message_that_was_valid_is_a_value_or_a_wire_error(pair: Any, data: st.DataObject, seed: int) -> None:
    _receive(pair.name, damaged(pair.to_wire(data.draw(pair.strategy)), seed))


def _receive(name: str, message: Message) -> None:
    decode, kind, encode = DECODERS[name]
    try:
        value = decode(kind.FromString(message.SerializeToString()))
    except WireError:
        return
    if encode is not None and kind is get_type_hints(encode).get("return"):
        assert decode(kind.FromString(encode(value).SerializeToString())) == value
