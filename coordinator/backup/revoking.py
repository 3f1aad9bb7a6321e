"""What counts again once a backup is restored, and its end where that is wanted."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from coordinator.store.store import Snapshot
from coordinator.store.trust.sql import SqlTrust
from coordinator.trust.records import StoredJoinToken, StoredToken, TrustChange, TrustSnapshot
from muster.domain.fleet.access import EVERYWHERE, Access, Account, AuditEntry, IssuedToken
from muster.trust.files import write_private
from muster.trust.tokens import digest, new_api_token


@dataclass(frozen=True, slots=True, kw_only=True)
class Wakes:
    """What a restored database makes count again."""

    tokens: int
    logins: int
    """Tokens that people got at an identity provider."""
    join_tokens: int
    nodes: int
    jobs: tuple[str, ...]
    """Ids of jobs that had not ended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revoked:
    """What does not count any more."""

    tokens: int
    join_tokens: int
    admin: str = ""
    """The account for which a new token is in `admin-token`; empty: some admin still has one."""


def what_wakes(records: Snapshot, trust: TrustSnapshot, now: datetime) -> Wakes:
    """What counts by these records."""
    people = {account.name for account in trust.accounts if account.identity}
    tokens = [stored.token for stored in trust.tokens if stored.token.valid(now)]
    return Wakes(
        tokens=len(tokens),
        logins=sum(token.account in people for token in tokens),
        join_tokens=sum(stored.token.refusal(now) is None for stored in trust.join_tokens),
        nodes=sum(node.revoked_at is None for node in trust.nodes),
        jobs=tuple(job.id for job in records.jobs if job.ended_at is None),
    )


def revoke_tokens(store: SqlTrust, state: Path, now: datetime, made_after: datetime | None) -> Revoked:
    """Revoke all tokens, or those made from a time on; where no admin has one left, make one as at a first start."""
    kept = store.load_trust()
    tokens = [
        replace(stored, token=replace(stored.token, revoked_at=now))
        for stored in kept.tokens
        if stored.token.valid(now) and (made_after is None or stored.token.created_at >= made_after)
    ]
    join_tokens = [
        replace(stored, token=replace(stored.token, revoked_at=now))
        for stored in kept.join_tokens
        if stored.token.refusal(now) is None and (made_after is None or stored.token.created_at >= made_after)
    ]
    admin, fresh = _admin(kept, tokens, now, state)
    since = "" if made_after is None else f" made since {made_after.isoformat()}"
    done = AuditEntry(at=now, who="", what=f"restore: tokens{since} revoked", target="", origin="", result="ok")
    changes: list[TrustChange] = [*tokens, *join_tokens, *fresh]
    store.commit_trust(changes, [done])
    return Revoked(tokens=len(tokens), join_tokens=len(join_tokens), admin=admin)


def _admin(
    kept: TrustSnapshot, revoked: Sequence[StoredToken], now: datetime, state: Path
) -> tuple[str, Sequence[StoredToken | StoredJoinToken]]:
    admins = [account for account in kept.accounts if _may_everything(account)]
    names, gone = {account.name for account in admins}, {stored.token.id for stored in revoked}
    left = [each.token for each in kept.tokens if each.token.valid(now) and each.token.id not in gone]
    if not admins or any(token.account in names for token in left):
        return "", ()
    account, secret = min(admins, key=lambda account: account.created_at), new_api_token()
    write_private(state / "admin-token", f"{secret}\n".encode())
    token = IssuedToken(id=secret.id, account=account.name, note="made by a restore", created_at=now)
    return account.name, (StoredToken(token=token, digest=digest(secret.secret)),)


def _may_everything(account: Account) -> bool:
    return account.grants.get(EVERYWHERE) is Access.ADMIN
