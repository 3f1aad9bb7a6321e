"""The one table of operations: what each asks of its caller, and what of it is written to the audit log.

An operation is `noun.verb`. Every transport maps its calls to these names, and entries of the audit log have them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from muster.domain.fleet.access import Access


class Scope(Enum):
    """Where the caller needs the access."""

    PUBLIC = "public"  #: nowhere: strangers may do it
    NODE = "node"  #: only nodes do it, with their certificate
    KNOWN = "known"  #: anywhere; the service decides what the caller sees of it
    ANYWHERE = "anywhere"  #: in some project
    EVERYWHERE = "everywhere"  #: in all projects
    PROJECT = "project"  #: in the project that it is about


class Record(Enum):
    """What of an operation goes to the audit log."""

    REFUSALS = "refusals"  #: only that it was refused for want of access
    ALL = "all"  #: how it ended, always, and on the disk before the caller hears of it
    LATER = "later"  #: how it ended, always; it is a look, so nobody waits for the disk
    FAILURES = "failures"  #: how it failed; its success is written together with the change


@dataclass(frozen=True, slots=True)
class Rule:
    """What one operation asks."""

    scope: Scope
    access: Access = Access.VIEWER
    record: Record = Record.REFUSALS


_FLEET_LOOK = Rule(Scope.EVERYWHERE, Access.OPERATOR)
_FLEET_ORDER = Rule(Scope.EVERYWHERE, Access.OPERATOR, Record.ALL)
_FLEET_CHANGE = Rule(Scope.EVERYWHERE, Access.OPERATOR, Record.FAILURES)

RULES: Mapping[str, Rule] = {
    "nodes.list": Rule(Scope.ANYWHERE),
    "nodes.get": Rule(Scope.ANYWHERE),
    "nodes.remove": _FLEET_ORDER,
    "nodes.cordon": _FLEET_ORDER,
    "nodes.uncordon": _FLEET_ORDER,
    "nodes.label": _FLEET_CHANGE,
    "secrets.set": Rule(Scope.PROJECT, Access.OPERATOR, Record.FAILURES),
    "secrets.list": Rule(Scope.PROJECT, Access.MEMBER, Record.LATER),
    "secrets.remove": Rule(Scope.PROJECT, Access.OPERATOR, Record.FAILURES),
}
"""Rules by name of the operation."""
