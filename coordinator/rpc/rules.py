"""What every call asks of its caller: the one table. A call that is not in it is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from muster.domain.access import Access


class Scope(Enum):
    """Where the caller needs his access."""

    PUBLIC = "public"  #: nowhere: strangers may call
    NODE = "node"  #: he is a node and shows its certificate
    PEER = "peer"  #: agents answer it to each other, the coordinator never
    KNOWN = "known"  #: anywhere; the service decides what he sees of it
    ANYWHERE = "anywhere"  #: in some project
    EVERYWHERE = "everywhere"  #: in all projects
    SPEC = "spec"  #: in the project that the job of the request names
    SPECS = "specs"  #: in every project that a job of the request names
    PROJECT = "project"  #: in the project that the request names
    JOB = "job"  #: in the project of the job that the request means


class Record(Enum):
    """What of a call goes to the audit log."""

    REFUSALS = "refusals"  #: only that it was refused for want of access
    ALL = "all"  #: how it ended, always, and on the disk before the caller hears of it
    LATER = "later"  #: how it ended, always; it is a look, so nobody waits for the disk
    FAILURES = "failures"  #: how it failed; its success is written together with the change


@dataclass(frozen=True, slots=True)
class Rule:
    """What one call asks."""

    scope: Scope
    access: Access = Access.VIEWER
    record: Record = Record.REFUSALS


_LOOK = Rule(Scope.JOB, Access.VIEWER)
_ORDER = Rule(Scope.JOB, Access.MEMBER, Record.ALL)
_LET_IN = Rule(Scope.EVERYWHERE, Access.OPERATOR)
_LET_IN_CHANGE = Rule(Scope.EVERYWHERE, Access.OPERATOR, Record.FAILURES)
_RULE = Rule(Scope.EVERYWHERE, Access.ADMIN)
_RULE_ORDER = Rule(Scope.EVERYWHERE, Access.ADMIN, Record.ALL)
_RULE_CHANGE = Rule(Scope.EVERYWHERE, Access.ADMIN, Record.FAILURES)

_OURS: Mapping[str, Mapping[str, Rule]] = {
    "JobService": {
        "Submit": Rule(Scope.SPEC, Access.MEMBER, Record.ALL),
        "SubmitMany": Rule(Scope.SPECS, Access.MEMBER, Record.ALL),
        "Get": _LOOK,
        "List": Rule(Scope.ANYWHERE, Access.VIEWER),
        "Stop": _ORDER,
        "Delete": _ORDER,
        "Watch": _LOOK,
        "Logs": _LOOK,
        "Why": _LOOK,
    },
    "BundleService": {
        "List": _LET_IN,
        "Get": _LET_IN,
        "Put": Rule(Scope.EVERYWHERE, Access.ADMIN, Record.ALL),
        "Remove": Rule(Scope.EVERYWHERE, Access.ADMIN, Record.ALL),
    },
    "LoginService": {
        "Start": Rule(Scope.PUBLIC),
        "Finish": Rule(Scope.PUBLIC),
    },
    "AgentService": {
        "Connect": Rule(Scope.NODE),
        "PushLogs": Rule(Scope.NODE),
        "Renew": Rule(Scope.NODE, record=Record.ALL),
        "Secrets": Rule(Scope.NODE),
    },
    "PeerService": {
        "Ask": Rule(Scope.PEER),
    },
    "JoinService": {
        "Authority": Rule(Scope.PUBLIC),
        "Join": Rule(Scope.PUBLIC),
    },
    "TrustService": {
        "WhoAmI": Rule(Scope.KNOWN),
        "ListAccounts": _RULE,
        "AddAccount": _RULE_CHANGE,
        "RemoveAccount": _RULE_CHANGE,
        "CreateToken": Rule(Scope.KNOWN, record=Record.FAILURES),
        "ListTokens": Rule(Scope.KNOWN),
        "RevokeToken": Rule(Scope.KNOWN, record=Record.FAILURES),
        "PruneTokens": Rule(Scope.KNOWN, record=Record.FAILURES),
        "ListProjects": Rule(Scope.KNOWN),
        "AddProject": _RULE_CHANGE,
        "SetPolicy": _RULE_CHANGE,
        "Grant": _RULE_CHANGE,
        "CreateJoinToken": _LET_IN_CHANGE,
        "ListJoinTokens": _LET_IN,
        "RevokeJoinToken": _LET_IN_CHANGE,
        "ListEnrolledNodes": _LET_IN,
        "RevokeNode": _LET_IN_CHANGE,
        "ShowAuthority": _RULE,
        "RotateAuthority": _RULE_ORDER,
        "FinishRotation": _RULE_ORDER,
        "ListAudit": _RULE,
    },
}

RULES: Mapping[str, Rule] = {
    **{f"/muster.rpc.v1.{service}/{call}": rule for service, calls in _OURS.items() for call, rule in calls.items()},
    "/grpc.health.v1.Health/Check": Rule(Scope.PUBLIC),
    "/grpc.health.v1.Health/List": Rule(Scope.PUBLIC),
    "/grpc.health.v1.Health/Watch": Rule(Scope.PUBLIC),
    # What it tells is in the public repository.
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": Rule(Scope.PUBLIC),
}
"""By the path of the call."""


def is_public(method: str) -> bool:
    """Whether strangers may make a call."""
    rule = RULES.get(method)
    return rule is not None and rule.scope is Scope.PUBLIC
