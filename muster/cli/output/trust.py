"""Accounts, tokens, projects, nodes that have joined and the audit log as tables."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from rich.table import Table

from muster.cli.output.plain.columns import Column
from muster.cli.output.tables import TextTable, facts, listing
from muster.cli.output.units import labels_text, time_text
from muster.domain.fleet.access import (
    EVERYWHERE,
    OPEN,
    Access,
    Account,
    AuditEntry,
    EnrolledNode,
    IssuedJoinToken,
    IssuedToken,
    Permissions,
    Project,
)
from muster.domain.fleet.attach_permission import Attachers, AttachPermission


def grants_text(grants: Mapping[str, Access]) -> str:
    """`admin everywhere, member of vision`."""
    parts = [f"{has} {'everywhere' if name == EVERYWHERE else f'of {name}'}" for name, has in sorted(grants.items())]
    return ", ".join(parts) or "none"


def accounts_table(accounts: Sequence[Account]) -> TextTable:
    """One line an account."""
    rows = (
        (each.name, each.kind, grants_text(each.grants), time_text(each.created_at), each.identity) for each in accounts
    )
    return listing(
        (
            "NAME",
            Column("KIND", spare=2),
            Column("ACCESS", least=16),
            Column("MADE", spare=1),
            Column("IDENTITY", least=12),
        ),
        rows,
    )


def tokens_table(tokens: Sequence[IssuedToken], now: datetime) -> TextTable:
    """One line an API token."""
    return listing(
        (
            "ID",
            Column("ACCOUNT", least=10),
            "STATE",
            Column("ACCESS", spare=2),
            Column("PROJECTS", spare=3, least=10),
            Column("MADE", spare=4),
            "UNTIL",
            Column("LAST USED", spare=1),
            Column("NOTE", least=10),
        ),
        (
            (
                token.id,
                token.account,
                "revoked" if token.revoked_at else "valid" if token.valid(now) else "expired",
                token.access or "all",
                ", ".join(token.projects) or "all",
                time_text(token.created_at),
                time_text(token.expires_at) if token.expires_at else "it is revoked",
                time_text(token.used_at) or "never",
                token.note,
            )
            for token in tokens
        ),
    )


def join_tokens_table(tokens: Sequence[IssuedJoinToken], now: datetime) -> TextTable:
    """One line a join token."""
    return listing(
        ("ID", "STATE", ">USES LEFT", "UNTIL", Column("LABELS", least=12), Column("MADE BY", spare=1, least=8)),
        (
            (
                token.id,
                token.refusal(now) or "valid",
                str(token.uses_left),
                time_text(token.expires_at),
                labels_text(token.labels),
                token.created_by,
            )
            for token in tokens
        ),
    )


def enrolled_nodes_table(nodes: Sequence[EnrolledNode]) -> TextTable:
    """One line a node that has joined."""
    return listing(
        (
            Column("NODE", least=12),
            "STATE",
            "JOINED",
            Column("TOKEN", spare=2),
            Column("LABELS", least=12),
            Column("KEY", spare=1),
        ),
        (
            (
                node.name,
                "revoked" if node.revoked_at else "joined",
                time_text(node.enrolled_at),
                node.token,
                labels_text(node.labels),
                f"sha256:{node.key[:16]}…",
            )
            for node in nodes
        ),
    )


def project_facts(project: Project) -> Table:
    """What is known of one project, line by line."""
    return facts(
        (
            ("project", project.name),
            ("made", time_text(project.created_at)),
            ("department", project.department or "none"),
            ("opened for", permissions_text(project.permissions)),
            ("may attach", attachers_text(project.permissions.attach)),
        )
    )


_ATTACHERS = {
    Attachers.OWNER: "the owner of a job, operators of the project",
    Attachers.MEMBERS: "all members of the project",
    Attachers.NOBODY: "nobody",
}


def attachers_text(permission: AttachPermission) -> str:
    """`all members of the project; no files`."""
    closed = _closed_ways(permission) if permission.who is not Attachers.NOBODY else []
    return "; ".join((_ATTACHERS[permission.who], *closed))


def _closed_ways(permission: AttachPermission) -> list[str]:
    ways = {"commands": permission.commands, "connections": permission.connections, "files": permission.files}
    return [f"no {way}" for way, opened in ways.items() if not opened]


def permissions_text(permissions: Permissions) -> str:
    """`any user, SYS_PTRACE, mounts from /data`."""
    if permissions == OPEN:
        return "everything"
    flags = (("privileged", permissions.privileged), ("gaining privileges", permissions.gain_privileges))
    parts = [
        *(["any user"] if permissions.any_user else []),
        *(name for name, opened in flags if opened),
        *sorted(permissions.capabilities),
        *(f"mounts from {path}" for path in permissions.host_paths),
        *([f"{permissions.pids} processes"] if permissions.pids else []),
        *_attach_words(permissions.attach),
    ]
    return ", ".join(parts) or "nothing beyond the default"


def _attach_words(permission: AttachPermission) -> list[str]:
    """What differs from the default; the ways are of no use where nobody may attach."""
    match permission.who:
        case Attachers.NOBODY:
            return ["no attaching"]
        case Attachers.MEMBERS:
            who = ["attaching by members"]
        case Attachers.OWNER:
            who = []
    return [*who, *(f"{way} when attached" for way in _closed_ways(permission))]


def audit_table(entries: Sequence[AuditEntry]) -> TextTable:
    """One line an entry, oldest first."""
    return listing(
        (
            "TIME",
            Column("WHO", least=10),
            Column("WHAT", least=12),
            Column("TARGET", least=12),
            Column("FROM", spare=1, least=10),
            Column("RESULT", least=10),
        ),
        (
            (time_text(each.at), each.who or "-", each.what, each.target, each.origin or "-", each.result)
            for each in entries
        ),
    )
