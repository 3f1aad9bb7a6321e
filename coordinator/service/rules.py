"""The one table of operations: what each asks of its caller, and what of it is written to the audit log.

An operation is `noun.verb`. Every transport maps its calls to these names, and entries of the audit log have them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from muster.domain.fleet.access import Access


class AccessScope(Enum):
    """Where the caller needs the access."""

    PUBLIC = "public"  #: nowhere: strangers may do it
    NODE = "node"  #: only nodes do it, with their certificate
    CONSOLE = "console"  #: only consoles do it, with the token of an account of that kind
    KNOWN = "known"  #: anywhere; the service decides what the caller sees of it
    ANYWHERE = "anywhere"  #: in some project
    EVERYWHERE = "everywhere"  #: in all projects
    PROJECT = "project"  #: in the project that it is about


class Audited(Enum):
    """What of an operation goes to the audit log."""

    REFUSALS = "refusals"  #: only that it was refused for want of access
    ALL = "all"  #: how it ended, always, and on the disk before the caller hears of it
    LATER = "later"  #: how it ended, always; it is a look, so nobody waits for the disk
    FAILURES = "failures"  #: how it failed; its success is written together with the change


@dataclass(frozen=True, slots=True)
class OperationRule:
    """What one operation asks."""

    scope: AccessScope
    access: Access = Access.VIEWER
    audited: Audited = Audited.REFUSALS


_JOB_LOOK = OperationRule(AccessScope.PROJECT)
_JOB_ORDER = OperationRule(AccessScope.PROJECT, Access.MEMBER, Audited.ALL)
_FLEET_LOOK = OperationRule(AccessScope.EVERYWHERE, Access.OPERATOR)
_FLEET_ORDER = OperationRule(AccessScope.EVERYWHERE, Access.OPERATOR, Audited.ALL)
_FLEET_CHANGE = OperationRule(AccessScope.EVERYWHERE, Access.OPERATOR, Audited.FAILURES)
_ADMIN_LOOK = OperationRule(AccessScope.EVERYWHERE, Access.ADMIN)
_ADMIN_ORDER = OperationRule(AccessScope.EVERYWHERE, Access.ADMIN, Audited.ALL)
_ADMIN_CHANGE = OperationRule(AccessScope.EVERYWHERE, Access.ADMIN, Audited.FAILURES)
_OWN_LOOK = OperationRule(AccessScope.KNOWN)
_OWN_CHANGE = OperationRule(AccessScope.KNOWN, audited=Audited.FAILURES)

RULES: Mapping[str, OperationRule] = {
    "jobs.submit": _JOB_ORDER,
    "jobs.get": _JOB_LOOK,
    "jobs.list": OperationRule(AccessScope.ANYWHERE),
    "jobs.stop": _JOB_ORDER,
    "jobs.delete": _JOB_ORDER,
    "jobs.hold": _JOB_ORDER,
    "jobs.unhold": _JOB_ORDER,
    "jobs.suspend": _JOB_ORDER,
    "jobs.resume": _JOB_ORDER,
    "jobs.change": _JOB_ORDER,
    "jobs.watch": _JOB_LOOK,
    "jobs.logs": _JOB_LOOK,
    "jobs.points": _JOB_LOOK,
    "jobs.samples": _JOB_LOOK,
    "jobs.why": _JOB_LOOK,
    "jobs.events": _JOB_LOOK,
    "data.upload": _JOB_ORDER,
    "data.storage": _OWN_LOOK,
    "data.outputs": OperationRule(AccessScope.PROJECT, audited=Audited.LATER),
    "outputs.retry": _JOB_ORDER,
    "checkpoints.list": _JOB_LOOK,
    "checkpoints.get": OperationRule(AccessScope.PROJECT, audited=Audited.LATER),
    "checkpoints.pin": _JOB_ORDER,
    "checkpoints.unpin": _JOB_ORDER,
    "checkpoints.remove": _JOB_ORDER,
    "volumes.list": OperationRule(AccessScope.ANYWHERE),
    "volumes.remove": _JOB_ORDER,
    "nodes.list": OperationRule(AccessScope.ANYWHERE),
    "nodes.get": OperationRule(AccessScope.ANYWHERE),
    "nodes.events": OperationRule(AccessScope.ANYWHERE),
    "nodes.samples": OperationRule(AccessScope.ANYWHERE),
    "nodes.remove": _FLEET_ORDER,
    "nodes.cordon": _FLEET_ORDER,
    "nodes.uncordon": _FLEET_ORDER,
    "nodes.label": _FLEET_CHANGE,
    "nodes.taint": _FLEET_ORDER,
    "nodes.enrolled": _FLEET_LOOK,
    "nodes.revoke": _FLEET_CHANGE,
    "nodes.join": OperationRule(AccessScope.PUBLIC),
    "images.list": _FLEET_LOOK,
    "images.clear": _FLEET_ORDER,
    "images.pull": _FLEET_ORDER,
    "images.watch": _FLEET_LOOK,
    "fleet.events": _FLEET_LOOK,
    "coordinator.show": OperationRule(AccessScope.ANYWHERE),
    "events.list": OperationRule(AccessScope.ANYWHERE),
    "feed.follow": OperationRule(AccessScope.ANYWHERE),
    "windows.list": OperationRule(AccessScope.ANYWHERE),
    "windows.put": _ADMIN_ORDER,
    "windows.remove": _ADMIN_ORDER,
    "pools.list": OperationRule(AccessScope.ANYWHERE),
    "pools.put": _ADMIN_CHANGE,
    "pools.remove": _ADMIN_CHANGE,
    "join_tokens.create": _FLEET_CHANGE,
    "join_tokens.list": _FLEET_LOOK,
    "join_tokens.revoke": _FLEET_CHANGE,
    "accounts.whoami": _OWN_LOOK,
    "accounts.list": _ADMIN_LOOK,
    "accounts.add": _ADMIN_CHANGE,
    "accounts.remove": _ADMIN_CHANGE,
    "accounts.grant": _ADMIN_CHANGE,
    "tokens.create": _OWN_CHANGE,
    "tokens.list": _OWN_LOOK,
    "tokens.revoke": _OWN_CHANGE,
    "tokens.prune": _OWN_CHANGE,
    "projects.list": _OWN_LOOK,
    "projects.get": OperationRule(AccessScope.PROJECT),
    "projects.add": _ADMIN_CHANGE,
    "projects.allow": _ADMIN_CHANGE,
    "projects.storage": _ADMIN_CHANGE,
    "projects.remove": _ADMIN_CHANGE,
    "policies.get": OperationRule(AccessScope.ANYWHERE),
    "policies.set": _ADMIN_CHANGE,
    "presets.put": OperationRule(AccessScope.PROJECT, Access.OPERATOR, Audited.FAILURES),
    "presets.get": OperationRule(AccessScope.ANYWHERE, Access.MEMBER),
    "presets.list": OperationRule(AccessScope.ANYWHERE, Access.MEMBER),
    "presets.history": OperationRule(AccessScope.ANYWHERE, Access.MEMBER),
    "presets.remove": OperationRule(AccessScope.PROJECT, Access.OPERATOR, Audited.FAILURES),
    "quotas.list": _OWN_LOOK,
    "quotas.set": _ADMIN_CHANGE,
    "usage.show": OperationRule(AccessScope.ANYWHERE),
    "queue.list": OperationRule(AccessScope.ANYWHERE),
    "secrets.set": OperationRule(AccessScope.PROJECT, Access.OPERATOR, Audited.FAILURES),
    "secrets.list": OperationRule(AccessScope.PROJECT, Access.MEMBER, Audited.LATER),
    "secrets.remove": OperationRule(AccessScope.PROJECT, Access.OPERATOR, Audited.FAILURES),
    "notifications.put": OperationRule(AccessScope.PROJECT, Access.MEMBER, Audited.FAILURES),
    "notifications.list": OperationRule(AccessScope.PROJECT, Access.MEMBER),
    "notifications.remove": OperationRule(AccessScope.PROJECT, Access.MEMBER, Audited.FAILURES),
    "notifications.test": _JOB_ORDER,
    "notifications.deliveries": OperationRule(AccessScope.PROJECT, Access.MEMBER),
    "notifications.follow": OperationRule(AccessScope.CONSOLE, audited=Audited.LATER),
    "notifications.report": OperationRule(AccessScope.CONSOLE),
    "secrets.deliver": OperationRule(AccessScope.NODE),
    "data.deliver": OperationRule(AccessScope.NODE),
    "data.found": OperationRule(AccessScope.NODE),
    "images.found": OperationRule(AccessScope.NODE),
    "swarms.show": OperationRule(AccessScope.NODE),
    "bundles.list": _FLEET_LOOK,
    "bundles.get": _FLEET_LOOK,
    "bundles.put": _ADMIN_ORDER,
    "bundles.remove": _ADMIN_ORDER,
    "logins.start": OperationRule(AccessScope.PUBLIC),
    "logins.finish": OperationRule(AccessScope.PUBLIC),
    "logins.hand": OperationRule(AccessScope.KNOWN, audited=Audited.ALL),
    "logins.redeem": OperationRule(AccessScope.CONSOLE, audited=Audited.FAILURES),
    "logins.begin": OperationRule(AccessScope.CONSOLE, audited=Audited.FAILURES),
    "logins.complete": OperationRule(AccessScope.CONSOLE, audited=Audited.FAILURES),
    "attachments.open": OperationRule(AccessScope.PROJECT, Access.MEMBER, Audited.FAILURES),
    "attachments.list": OperationRule(AccessScope.ANYWHERE),
    "attachments.close": _JOB_ORDER,
    "authority.pin": OperationRule(AccessScope.PUBLIC),
    "authority.show": _ADMIN_LOOK,
    "authority.rotate": _ADMIN_ORDER,
    "authority.finish": _ADMIN_ORDER,
    "audit.list": _ADMIN_LOOK,
    "agents.connect": OperationRule(AccessScope.NODE),
    "agents.push_logs": OperationRule(AccessScope.NODE),
    "agents.renew": OperationRule(AccessScope.NODE, audited=Audited.ALL),
}
"""Rules by name of the operation."""
