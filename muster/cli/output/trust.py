"""Accounts, tokens, projects, nodes that have joined and the audit log as tables."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from rich.table import Table

from muster.cli.output.tables import listing
from muster.cli.output.units import time_text
from muster.domain.fleet.access import (
    EVERYWHERE,
    OPEN,
    Access,
    Account,
    AuditEntry,
    EnrolledNode,
    IssuedJoinToken,
    IssuedToken,
    Policy,
    Project,
)


def grants_text(grants: Mapping[str, Access]) -> str:
    """`admin everywhere, member of vision`."""
    parts = [f"{has} {'everywhere' if name == EVERYWHERE else f'of {name}'}" for name, has in sorted(grants.items())]
    return ", ".join(parts) or "none"


def accounts_table(accounts: Sequence[Account]) -> Table:
    """One line an account."""
    rows = (
        (each.name, each.kind, grants_text(each.grants), time_text(each.created_at), each.identity) for each in accounts
    )
    return listing(("NAME", "KIND", "ACCESS", "MADE", "IDENTITY"), rows)


def tokens_table(tokens: Sequence[IssuedToken], now: datetime) -> Table:
    """One line an API token."""
    return listing(
        ("ID", "ACCOUNT", "STATE", "ACCESS", "PROJECTS", "MADE", "UNTIL", "LAST USED", "NOTE"),
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


def join_tokens_table(tokens: Sequence[IssuedJoinToken], now: datetime) -> Table:
    """One line a join token."""
    return listing(
        ("ID", "STATE", ">USES LEFT", "UNTIL", "LABELS", "MADE BY"),
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


def enrolled_nodes_table(nodes: Sequence[EnrolledNode]) -> Table:
    """One line a node that has joined."""
    return listing(
        ("NODE", "STATE", "JOINED", "TOKEN", "LABELS", "KEY"),
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


def projects_table(projects: Sequence[Project]) -> Table:
    """One line a project."""
    rows = ((project.name, time_text(project.created_at), policy_text(project.policy)) for project in projects)
    return listing(("PROJECT", "MADE", "OPENED FOR"), rows)


def policy_text(policy: Policy) -> str:
    """`any user, SYS_PTRACE, mounts from /data`."""
    if policy == OPEN:
        return "everything"
    flags = (("privileged", policy.privileged), ("gaining privileges", policy.gain_privileges))
    parts = [
        *(["any user"] if policy.any_user else []),
        *(name for name, opened in flags if opened),
        *sorted(policy.capabilities),
        *(f"mounts from {path}" for path in policy.host_paths),
        *([f"{policy.pids} processes"] if policy.pids else []),
    ]
    return ", ".join(parts) or "nothing beyond the default"


def audit_table(entries: Sequence[AuditEntry]) -> Table:
    """One line an entry, oldest first."""
    return listing(
        ("TIME", "WHO", "WHAT", "TARGET", "FROM", "RESULT"),
        (
            (time_text(each.at), each.who or "-", each.what, each.target, each.origin or "-", each.result)
            for each in entries
        ),
    )


def labels_text(labels: Mapping[str, str]) -> str:
    """`pool=a, rack=7`."""
    return ", ".join(f"{name}={value}" for name, value in sorted(labels.items()))
