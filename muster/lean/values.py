"""Values whose methods share their code, as an agent has hundreds of classes of values and uses few of them.

`dataclasses` writes and compiles six methods for each frozen class with slots, and two of these hold on to a second
copy of the class. Here only `__init__` is written for each class. A value is made, compared, hashed, shown and copied
as before, and refuses changes as before.
"agent resident memory, idle" of `make bench ONLY=resident` pays for this.
"""

import dataclasses
from collections.abc import Callable, Hashable, Sequence
from operator import attrgetter
from reprlib import recursive_repr
from typing import Any, cast

_as_python_has_it = dataclasses.dataclass
_PLAIN = frozenset({"frozen", "slots", "kw_only"})
"""Options of a class that gets shared methods; with any other one it is Python's affair alone."""


def share_methods_of_values() -> None:
    """Have the frozen classes with slots that are made from here on share their methods; harmless when repeated."""
    dataclasses.dataclass = lean_dataclass


def lean_dataclass(cls: type | None = None, /, **options: bool) -> Any:  # noqa: ANN401 - as that of Python's own
    """What stands for `dataclasses.dataclass`."""
    if cls is not None or not (options.get("frozen") and options.get("slots") and options.keys() <= _PLAIN):
        return _as_python_has_it(cls, **options)
    return lambda decorated: _lean(decorated, options)


def _lean(cls: type, options: dict[str, bool]) -> type:
    own = dict(vars(cls))
    made: Any = _as_python_has_it(cls, **options, repr=False, eq=False)
    fields = dataclasses.fields(made)
    made.__setattr__, made.__delattr__ = _refuse_setting, _refuse_deleting  # Python's own hold on to `cls`
    if "__repr__" not in own:
        made.__repr__ = _shown
    if "__eq__" not in own:
        made.__eq__ = _equality(_values([each.name for each in fields if each.compare]))
    if own.get("__hash__") is None:  # Python puts None there for whoever says `__eq__` alone
        hashed = [each.name for each in fields if (each.compare if each.hash is None else each.hash)]
        made.__hash__ = _hash(_values(hashed))
    return cast(type, made)


def _values(names: Sequence[str]) -> Callable[[object], tuple[Hashable, ...]]:
    """What takes the values of fields out of a value, in a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    if not names:
        return lambda _: ()
    only = attrgetter(*names)
    return lambda value: (only(value),)


def _equality(values: Callable[[object], tuple[Hashable, ...]]) -> Callable[[object, object], bool]:
    def __eq__(self: object, other: object) -> bool:  # noqa: N807 - the name that a traceback shows
        if other.__class__ is self.__class__:
            return values(self) == values(other)
        return NotImplemented

    return __eq__


def _hash(values: Callable[[object], tuple[Hashable, ...]]) -> Callable[[object], int]:
    def __hash__(self: object) -> int:  # noqa: N807 - the name that a traceback shows
        return hash(values(self))

    return __hash__


@recursive_repr()
def _shown(self: object) -> str:
    fields: Sequence[dataclasses.Field[object]] = dataclasses.fields(cast(Any, self))
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_setting(self: object, name: str, value: object) -> None:
    if _is_kept(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
    object.__setattr__(self, name, value)


def _refuse_deleting(self: object, name: str) -> None:
    if _is_kept(self, name):
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
    object.__delattr__(self, name)


def _is_kept(self: object, name: str) -> bool:
    """Whether that may not change. Only a class that is built on a value, and is none itself, may have more."""
    kind: Any = type(self)
    return "__dataclass_fields__" in vars(kind) or name in kind.__dataclass_fields__
