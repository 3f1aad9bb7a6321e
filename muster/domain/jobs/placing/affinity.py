"""Which nodes a job needs, or would rather have, by what their labels say."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

MOST_SAID = 3
"""Terms of which a refusal says what does not hold; the others are counted."""
WHOLE_NUMBER = r"-?[0-9]{1,18}"
"""The pattern of values that are compared as numbers."""


class LabelOperator(StrEnum):
    """How a label of a node is compared with the values of an expression."""

    IN = "In"  #: it has one of the values
    NOT_IN = "NotIn"  #: it has none of the values, or is not there
    EXISTS = "Exists"  #: it is there, whatever its value
    DOES_NOT_EXIST = "DoesNotExist"  #: it is not there
    GT = "Gt"  #: it is a whole number above the value
    LT = "Lt"  #: it is a whole number below the value


NUMERIC = frozenset({LabelOperator.GT, LabelOperator.LT})
"""Operators that compare numbers, and take exactly one."""
WITHOUT_VALUES = frozenset({LabelOperator.EXISTS, LabelOperator.DOES_NOT_EXIST})
"""Operators that take no values."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelExpression:
    """What one label of a node must be like."""

    key: str
    operator: LabelOperator = LabelOperator.IN
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether it holds for a node with these labels."""
        value = labels.get(self.key)
        match self.operator:
            case LabelOperator.IN:
                return value in self.values
            case LabelOperator.NOT_IN:
                return value not in self.values
            case LabelOperator.EXISTS:
                return value is not None
            case LabelOperator.DOES_NOT_EXIST:
                return value is None
            case LabelOperator.GT:
                return _is_number(value) and int(value or 0) > int(self.values[0])
            case LabelOperator.LT:
                return _is_number(value) and int(value or 0) < int(self.values[0])

    def broken_by(self, labels: Mapping[str, str]) -> str:
        """What a node with these labels is like instead of what the expression says."""
        value, wanted = labels.get(self.key), " or ".join(self.values)
        it_is = "is not there" if value is None else f"is {value}"
        match self.operator:
            case LabelOperator.IN:
                return f"{self.key} must be {wanted} and {it_is}"
            case LabelOperator.NOT_IN:
                return f"{self.key} must not be {wanted}{'' if len(self.values) == 1 else f' and {it_is}'}"
            case LabelOperator.EXISTS:
                return f"{self.key} must be there"
            case LabelOperator.DOES_NOT_EXIST:
                return f"{self.key} must not be there and {it_is}"
            case LabelOperator.GT | LabelOperator.LT:
                side = "above" if self.operator is LabelOperator.GT else "below"
                return f"{self.key} must be a number {side} {wanted} and {it_is}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreferredTerm:
    """Nodes that a job would rather have: those for which all expressions hold."""

    weight: int = 1
    """What a node costs more for which they do not."""
    all: tuple[LabelExpression, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Affinity:
    """Nodes that a job needs, and nodes that it would rather have."""

    required: tuple[tuple[LabelExpression, ...], ...] = ()
    """Terms, of one of which all expressions must hold; empty: any node will do."""
    preferred: tuple[PreferredTerm, ...] = ()

    @property
    def expressions(self) -> tuple[LabelExpression, ...]:
        """All expressions, required and preferred."""
        terms = (*self.required, *(term.all for term in self.preferred))
        return tuple(expression for term in terms for expression in term)

    def broken_by(self, labels: Mapping[str, str]) -> str | None:
        """Why a node with these labels is none of those that are required; None: it is one."""
        if not self.required:
            return None
        broken = [next((each for each in term if not each.holds(labels)), None) for term in self.required]
        if None in broken:
            return None
        said = [
            f"[{number}]: {expression.broken_by(labels)}"
            for number, expression in enumerate(broken[:MOST_SAID])
            if expression is not None
        ]
        others = len(broken) - len(said)
        more = f"; nor {others} {'other' if others == 1 else 'others'}" if others else ""
        return f"does not match affinity.required{'; nor '.join(said)}{more}"

    def cost(self, labels: Mapping[str, str]) -> int:
        """What a node with these labels costs: the weights of all preferred terms that do not hold."""
        return sum(term.weight for term in self.preferred if not all(each.holds(labels) for each in term.all))


NO_AFFINITY = Affinity()


def _is_number(value: str | None) -> bool:
    return value is not None and re.fullmatch(WHOLE_NUMBER, value, re.ASCII) is not None
