"""Which rows of the mirror somebody wants, in which order, and from where on: `where`, `sort` and pages."""

import base64
import json
import operator
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from console.mirror.rows import LABEL_FIELD, MirrorRow, Scalar
from muster.domain.errors import InvalidJobError

SortKey = tuple[bool, int, float, str]
"""What values are compared by."""

MOST_CONDITIONS = 20
"""Conditions, and fields to sort by, of one request."""
LONGEST_CONDITION = 500
"""Characters of one of them."""

_LONGEST_NUMBER = len(str(2**63))
_EQUALITIES = {"==": True, "!=": False}
_ORDERS: Mapping[str, Callable[[SortKey, SortKey], bool]] = {"<=": operator.le, ">=": operator.ge}
_TEXTS: Mapping[str, Callable[[str, str], bool]] = {
    "=@": lambda text, part: part in text,
    "!@": lambda text, part: part not in text,
    "=^": str.startswith,
    "=$": str.endswith,
}
_CONDITION = re.compile(r"([\w./-]+)(==|!=|<=|>=|=@|!@|=\^|=\$)(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Condition:
    """What a row has to be like."""

    field: str
    operator: str
    value: str

    def holds(self, row: MirrorRow) -> bool:
        """Whether a row is so; raises InvalidJobError for a value that the field cannot have."""
        has = row.fields.get(self.field)
        if self.operator in _EQUALITIES:
            return _equal(has, self.value) is _EQUALITIES[self.operator]
        if self.operator in _ORDERS:
            return has is not None and _ORDERS[self.operator](_key(has), _key(_like(has, self.value, self.field)))
        return _TEXTS[self.operator](_text(has), self.value)


@dataclass(frozen=True, slots=True)
class SortField:
    """A field to sort by."""

    field: str
    descending: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsWanted:
    """Which rows, in which order; without an order as lists are."""

    conditions: Sequence[Condition] = ()
    order: Sequence[SortField] = ()
    size: int
    page: str = ""

    def of(self, rows: Iterable[MirrorRow]) -> tuple[Sequence[MirrorRow], str]:
        """A page of the rows, and where the next one begins; raises InvalidJobError."""
        found = [row for row in rows if all(condition.holds(row) for condition in self.conditions)]
        found.sort(key=lambda row: (row.place, row.key.name))
        for each in reversed(self.order):
            found.sort(key=_key_by(each.field), reverse=each.descending)
        begin = self._begin(found)
        page = found[begin : begin + self.size]
        more = begin + self.size < len(found)
        return page, self._token(page[-1]) if page and more else ""

    def _begin(self, rows: Sequence[MirrorRow]) -> int:
        """The number of the first row behind the one at which the page before has ended."""
        if not self.page:
            return 0
        if not self.order and self.page.isdecimal():
            last = -int(self.page) if len(self.page) < _LONGEST_NUMBER else 0
            return next((number for number, row in enumerate(rows) if row.place > last), len(rows))
        values, place, name = _read(self.page, len(self.order))
        for number, row in enumerate(rows):
            if self._is_behind(row, values, place, name):
                return number
        return len(rows)

    def _is_behind(self, row: MirrorRow, values: Sequence[Scalar], place: int, name: str) -> bool:
        for each, value in zip(self.order, values, strict=True):
            own, other = _key(row.fields.get(each.field)), _key(value)
            if own != other:
                return (own < other) if each.descending else (own > other)
        return (row.place, row.key.name) > (place, name)

    def _token(self, row: MirrorRow) -> str:
        if not self.order and row.place:
            return str(-row.place)
        values = [_plain(row.fields.get(each.field)) for each in self.order]
        return base64.urlsafe_b64encode(json.dumps([values, row.place, row.key.name]).encode()).decode()


def conditions_of(written: Sequence[str], fields: Collection[str]) -> Sequence[Condition]:
    """Conditions as somebody has written them, like `phase==running`; raises InvalidJobError."""
    _few(written, "where")
    found = []
    for each in written:
        parts = _CONDITION.fullmatch(each)
        if parts is None or len(each) > LONGEST_CONDITION:
            raise InvalidJobError(
                f"where={each[:80]} is no condition like phase==running: "
                "a field, one of == != <= >= =@ !@ =^ =$, and a value"
            )
        _known(parts[1], fields, "where")
        found.append(Condition(parts[1], parts[2], parts[3]))
    return found


def order_of(written: str, fields: Collection[str]) -> Sequence[SortField]:
    """Fields to sort by, like `-submitted_at,name`; raises InvalidJobError."""
    found = [each for each in written.split(",") if each]
    _few(found, "sort")
    order = [SortField(each.removeprefix("-"), each.startswith("-")) for each in found]
    for each in order:
        _known(each.field, fields, "sort")
    return order


def _few(written: Sequence[str], where: str) -> None:
    if len(written) > MOST_CONDITIONS:
        raise InvalidJobError(f"{where} names {len(written)}; at most {MOST_CONDITIONS} are taken")


def _known(field: str, fields: Collection[str], where: str) -> None:
    if field not in fields and not (field.startswith(LABEL_FIELD) and len(field) > len(LABEL_FIELD)):
        raise InvalidJobError(
            f"{where}: there is no field {field[:80]!r}; there are {', '.join(sorted(fields))}, label.KEY"
        )


def _equal(has: Scalar, value: str) -> bool:
    if isinstance(has, (float, datetime)) and not isinstance(has, bool):
        try:
            return _like(has, value, "") == has
        except InvalidJobError:
            return False
    return _text(has) == value


def _text(value: Scalar) -> str:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:g}"
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value


def _like(has: Scalar, value: str, field: str) -> Scalar:
    """A value as the field has it; raises InvalidJobError."""
    try:
        if isinstance(has, datetime):
            moment = datetime.fromisoformat(value)
            return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        if isinstance(has, float):
            return float(value)
    except ValueError:
        kind = "time like 2026-11-27T09:00:00Z" if isinstance(has, datetime) else "number"
        raise InvalidJobError(f"where: {value[:80]!r} is no {kind}, which {field} is") from None
    return value


def _key(value: Scalar) -> SortKey:
    """What values are compared by; none comes first."""
    match value:
        case None:
            return (False, 0, 0.0, "")
        case bool() | float() | int():
            return (True, 0, float(value), "")
        case datetime():
            return (True, 1, value.timestamp(), "")
    return (True, 2, 0.0, value)


def _key_by(field: str) -> Callable[[MirrorRow], SortKey]:
    return lambda row: _key(row.fields.get(field))


def _plain(value: Scalar) -> Mapping[str, float] | str | float | None:
    return {"at": value.timestamp()} if isinstance(value, datetime) else value


def _read(page: str, count: int) -> tuple[Sequence[Scalar], int, str]:
    """What a token says; raises InvalidJobError."""
    try:
        match json.loads(base64.urlsafe_b64decode(page.encode())):
            case [list() as values, int() as place, str() as name] if len(values) == count:
                return [_scalar(value) for value in values], place, name
    except (ValueError, RecursionError, OverflowError):
        pass
    raise InvalidJobError(f"{page[:80]!r} is not a page token of this list")


def _scalar(value: object) -> Scalar:
    match value:
        case {"at": int() | float() as at}:
            return datetime.fromtimestamp(at, UTC)
        case None | str() | bool():
            return value
        case int() | float():
            return float(value)
    raise ValueError(value)
