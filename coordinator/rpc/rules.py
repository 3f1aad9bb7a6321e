"""What every call asks of its caller: the one table. A call that is not in it is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from muster.domain.fleet.access import Access


class CallScope(Enum):
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


class Audited(Enum):
    """What of a call goes to the audit log."""

    REFUSALS = "refusals"  #: only that it was refused for want of access
    ALL = "all"  #: how it ended, always, and on the disk before the caller hears of it
    LATER = "later"  #: how it ended, always; it is a look, so nobody waits for the disk
    FAILURES = "failures"  #: how it failed; its success is written together with the change


@dataclass(frozen=True, slots=True)
class CallRule:
    """What one call asks."""

    scope: CallScope
    access: Access = Access.VIEWER
    record: Audited = Audited.REFUSALS


_LOOK = CallRule(CallScope.JOB, Access.VIEWER)
_ORDER = CallRule(CallScope.JOB, Access.MEMBER, Audited.ALL)
_LET_IN = CallRule(CallScope.EVERYWHERE, Access.OPERATOR)
_LET_IN_CHANGE = CallRule(CallScope.EVERYWHERE, Access.OPERATOR, Audited.FAILURES)
_RULE = CallRule(CallScope.EVERYWHERE, Access.ADMIN)
_RULE_ORDER = CallRule(CallScope.EVERYWHERE, Access.ADMIN, Audited.ALL)
_RULE_CHANGE = CallRule(CallScope.EVERYWHERE, Access.ADMIN, Audited.FAILURES)

_OURS: Mapping[str, Mapping[str, CallRule]] = {
    "JobService": {
        "Submit": CallRule(CallScope.SPEC, Access.MEMBER, Audited.ALL),
        "SubmitMany": CallRule(CallScope.SPECS, Access.MEMBER, Audited.ALL),
        "Get": _LOOK,
        "List": CallRule(CallScope.ANYWHERE, Access.VIEWER),
        "Stop": _ORDER,
        "Delete": _ORDER,
        "Watch": _LOOK,
        "Logs": _LOOK,
        "Why": _LOOK,
    },
    "BundleService": {
        "List": _LET_IN,
        "Get": _LET_IN,
        "Put": CallRule(CallScope.EVERYWHERE, Access.ADMIN, Audited.ALL),
        "Remove": CallRule(CallScope.EVERYWHERE, Access.ADMIN, Audited.ALL),
    },
    "LoginService": {
        "Start": CallRule(CallScope.PUBLIC),
        "Finish": CallRule(CallScope.PUBLIC),
    },
    "AgentService": {
        "Connect": CallRule(CallScope.NODE),
        "PushLogs": CallRule(CallScope.NODE),
        "Renew": CallRule(CallScope.NODE, record=Audited.ALL),
        "Secrets": CallRule(CallScope.NODE),
    },
    "PeerService": {
        "Ask": CallRule(CallScope.PEER),
    },
    "JoinService": {
        "Authority": CallRule(CallScope.PUBLIC),
        "Join": CallRule(CallScope.PUBLIC),
    },
    "TrustService": {
        "WhoAmI": CallRule(CallScope.KNOWN),
        "ListAccounts": _RULE,
        "AddAccount": _RULE_CHANGE,
        "RemoveAccount": _RULE_CHANGE,
        "CreateToken": CallRule(CallScope.KNOWN, record=Audited.FAILURES),
        "ListTokens": CallRule(CallScope.KNOWN),
        "RevokeToken": CallRule(CallScope.KNOWN, record=Audited.FAILURES),
        "PruneTokens": CallRule(CallScope.KNOWN, record=Audited.FAILURES),
        "ListProjects": CallRule(CallScope.KNOWN),
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

RULES: Mapping[str, CallRule] = {
    **{f"/muster.rpc.v1.{service}/{call}": rule for service, calls in _OURS.items() for call, rule in calls.items()},
    "/grpc.health.v1.Health/Check": CallRule(CallScope.PUBLIC),
    "/grpc.health.v1.Health/List": CallRule(CallScope.PUBLIC),
    "/grpc.health.v1.Health/Watch": CallRule(CallScope.PUBLIC),
    # What it tells is in the public repository.
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo": CallRule(CallScope.PUBLIC),
}
"""By the path of the call."""


def is_public(method: str) -> bool:
    """Whether strangers may make a call."""
    rule = RULES.get(method)
    return rule is not None and rule.scope is CallScope.PUBLIC
