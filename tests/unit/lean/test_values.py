"""Values with shared methods are as those of Python's own `dataclasses`: each test takes both, and expects the same."""

import copy
import dataclasses
from collections.abc import Callable
from typing import Any, TypeAlias

import pytest

from muster.lean.values import lean_dataclass

Maker: TypeAlias = Callable[..., Any]
"""What makes a class of values of another."""

MAKERS = pytest.mark.parametrize("maker", [dataclasses.dataclass, lean_dataclass], ids=["Python", "lean"])


def _ports(maker: Maker) -> Any:
    """A class of values as there are hundreds."""

    class Port:
        number: int
        name: str = "http"
        token: str = dataclasses.field(default="", repr=False)
        seen: int = dataclasses.field(default=0, compare=False)
        peers: tuple[object, ...] = ()

    return maker(frozen=True, slots=True, kw_only=True)(Port)


def _made(maker: Maker, body: dict[str, object], *bases: type, **options: bool) -> Any:
    return maker(**{"frozen": True, "slots": True, **options})(type("Made", bases, body))


@MAKERS
def test_values_are_equal_when_all_that_is_compared_is(maker: Maker) -> None:
    ports = _ports(maker)
    assert ports(number=1) == ports(number=1, seen=9)
    assert ports(number=1) != ports(number=2)
    assert ports(number=1) != ports(number=1, token="t")
    assert ports(number=1) != (1, "http", "", ())
    assert ports(number=1).__eq__(1) is NotImplemented


@MAKERS
def test_equal_values_have_the_same_hash(maker: Maker) -> None:
    ports = _ports(maker)
    assert {ports(number=1), ports(number=1, seen=9), ports(number=2)} == {ports(number=1), ports(number=2)}
    with pytest.raises(TypeError, match="unhashable"):
        hash(ports(number=1, peers=([],)))


@MAKERS
@pytest.mark.parametrize("fields", [{}, {"only": int}], ids=["no field", "one field"])
def test_values_of_no_field_or_one_are_compared_too(maker: Maker, fields: dict[str, type]) -> None:
    made = _made(maker, {"__annotations__": fields})
    same = [made(*(float("nan") for _ in fields))] * 2
    assert same[0] == same[1]
    assert copy.copy(same[0]) == same[0]
    assert hash(same[0]) == hash(same[1])
    assert made(*(1 for _ in fields)) != object()


@MAKERS
def test_a_value_of_another_class_is_another_value(maker: Maker) -> None:
    ports = _ports(maker)
    derived = _made(maker, {"__annotations__": {}}, ports)
    assert derived(number=1) != ports(number=1)
    assert repr(derived(number=1)) == "Made(number=1, name='http', seen=0, peers=())"


@MAKERS
def test_what_is_shown_leaves_out_what_must_not_be_seen(maker: Maker) -> None:
    assert (
        repr(_ports(maker)(number=1, token="secret")) == "_ports.<locals>.Port(number=1, name='http', seen=0, peers=())"
    )


@MAKERS
def test_a_value_that_contains_itself_can_be_shown(maker: Maker) -> None:
    around: list[object] = []
    value = _made(maker, {"__annotations__": {"inside": list}})(around)
    around.append(value)
    assert repr(value) == "Made(inside=[...])"


@MAKERS
def test_nothing_of_a_value_can_be_changed(maker: Maker) -> None:
    port = _ports(maker)(number=1)
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'number'"):
        port.number = 2
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot delete field 'number'"):
        del port.number


def test_what_is_no_field_is_refused_by_a_value_as_well() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'other'"):
        _ports(lean_dataclass)(number=1).other = 2  # Python 3.11 confuses two classes there, and raises TypeError


def test_a_class_that_is_built_on_a_value_may_have_more() -> None:
    more = type("More", (_ports(lean_dataclass),), {})(number=1)
    more.other = 2
    del more.other
    with pytest.raises(dataclasses.FrozenInstanceError):
        more.number = 2


@MAKERS
def test_methods_that_a_class_has_itself_stay(maker: Maker) -> None:
    body = {
        "__annotations__": {"name": str},
        "__repr__": lambda _: "shown",
        "__eq__": lambda _, __: True,
        "__hash__": lambda _: 7,
    }
    made = _made(maker, body)
    assert (repr(made("a")), made("a") == made("b"), hash(made("a"))) == ("shown", True, 7)


@MAKERS
def test_whoever_says_what_is_equal_alone_has_a_hash_all_the_same(maker: Maker) -> None:
    made = _made(maker, {"__annotations__": {"name": str}, "__eq__": lambda _, __: True, "__hash__": None})
    assert hash(made("a")) == hash(made("a"))
    assert made("a") == made("b")


@MAKERS
def test_values_are_copied_replaced_matched_and_taken_apart(maker: Maker) -> None:
    ports = _ports(maker)
    port = ports(number=1, peers=((1, 2),))
    assert copy.deepcopy(port) == port
    assert dataclasses.replace(port, number=2) == ports(number=2, peers=((1, 2),))
    assert dataclasses.asdict(port)["number"] == 1
    assert ports.__match_args__ == ()
    assert _made(maker, {"__annotations__": {"a": int}}).__match_args__ == ("a",)


@MAKERS
def test_arguments_are_checked(maker: Maker) -> None:
    ports = _ports(maker)
    with pytest.raises(TypeError, match="positional argument"):
        ports(1)
    with pytest.raises(TypeError, match="number"):
        ports()


@MAKERS
@pytest.mark.parametrize("options", [{"order": True}, {"eq": False}, {"slots": False}, {"frozen": False}])
def test_whoever_wants_something_else_of_a_class_has_it_from_python(maker: Maker, options: dict[str, bool]) -> None:
    made = _made(maker, {"__annotations__": {"a": int}}, **options)
    assert (made(1) == made(1)) is options.get("eq", True)
    assert hasattr(made(1), "__dict__") is ("slots" in options)
    assert ("__lt__" in vars(made)) is ("order" in options)
    assert made.__setattr__ is not _ports(lean_dataclass).__setattr__


def test_all_classes_share_what_refuses_changes_and_what_shows() -> None:
    one, other = _ports(lean_dataclass), _made(lean_dataclass, {"__annotations__": {"a": int}})
    for name in ("__setattr__", "__delattr__", "__repr__"):
        assert getattr(one, name) is getattr(other, name)
    assert one.__eq__.__code__ is other.__eq__.__code__
    assert one.__hash__.__code__ is other.__hash__.__code__
