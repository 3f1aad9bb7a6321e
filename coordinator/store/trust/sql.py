"""Trust on disk: the registry's store over the coordinator's database."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar, assert_never

from sqlalchemy import ColumnElement, Connection, Delete, Engine, Table, bindparam, delete, insert, select, update

from coordinator.store.dialect import connect, explained, reading, upsert
from coordinator.store.schema_version import bring_up_to_date
from coordinator.store.store import StoreFullError
from coordinator.store.trust import audit, presets, schema
from coordinator.store.trust.audit_reserve import AuditReserve
from coordinator.trust.records import (
    AuditWish,
    RemovedAccount,
    RemovedPolicy,
    RemovedPreset,
    RemovedSecret,
    RemovedSubscription,
    RemovedToken,
    StoredJoinToken,
    StoredSecret,
    StoredToken,
    TokensUsed,
    TrustChange,
    TrustSnapshot,
)
from muster.domain.fleet.access import (
    Access,
    Account,
    AccountKind,
    AuditAnchor,
    AuditEntry,
    EnrolledNode,
    IssuedJoinToken,
    IssuedToken,
)
from muster.domain.fleet.policies.policy import JobPolicy, PolicyRule
from muster.domain.fleet.policies.preset import Preset, PresetId
from muster.domain.fleet.secret import Secret, SecretKind
from muster.domain.ids import NodeId
from muster.domain.notifications.event_types import EventSeverity
from muster.domain.notifications.subscription import Subscription, SubscriptionTarget

T = TypeVar("T")

PRUNED = "audit.pruned"
"""The call that an entry about removed entries names."""


class SqlTrust:
    """Keeps trust in the same database as the records, over connections of its own."""

    def __init__(self, engine: Engine, reserve: AuditReserve | None = None) -> None:
        """`reserve`: room on the disk of a SQLite file that is given back when nothing else is left."""
        self._engine = engine
        self._reserve = reserve

    @classmethod
    def open(cls, database: Path | str) -> "SqlTrust":
        """The store in a SQLite file or at an SQLAlchemy URL, brought to this version."""
        bring_up_to_date(database)
        reserve = AuditReserve(database.with_name("audit-reserve")) if isinstance(database, Path) else None
        return cls(connect(database), reserve)

    def load_trust(self) -> TrustSnapshot:
        """Everything, as last committed."""
        with explained(self._engine), self._engine.connect() as connection:
            return TrustSnapshot(
                accounts=_accounts(connection),
                tokens=tuple(map(_token, _rows(connection, schema.tokens))),
                join_tokens=tuple(map(_join_token, _rows(connection, schema.join_tokens))),
                nodes=tuple(
                    EnrolledNode(**{**row, "name": NodeId(row["name"])})
                    for row in _rows(connection, schema.enrolled_nodes)
                ),
                subscriptions=tuple(map(_subscription, _rows(connection, schema.subscriptions))),
                policies=tuple(map(_policy, _rows(connection, schema.policies))),
            )

    def commit_trust(self, changes: Sequence[TrustChange], entries: Sequence[AuditEntry] = ()) -> None:
        """Keep all changes and audit entries in one transaction."""

        def keep(connection: Connection) -> None:
            for change in changes:
                self._apply(connection, change)
            audit.add(connection, entries)

        self._write(keep)

    def enrol(self, token: str, node: EnrolledNode, entry: AuditEntry) -> IssuedJoinToken | None:
        """Use a join token once for a node, in one transaction; None if it has no use left."""
        table = schema.join_tokens
        usable = (
            table.c.id == token,
            table.c.uses_left > 0,
            table.c.expires_at > entry.at,
            table.c.revoked_at.is_(None),
        )

        def use(connection: Connection) -> IssuedJoinToken | None:
            used = connection.execute(update(table).where(*usable).values(uses_left=table.c.uses_left - 1))
            if used.rowcount != 1:
                return None
            self._put(connection, schema.enrolled_nodes, asdict(node))
            audit.add(connection, (entry,))
            return _join_token(_rows(connection, table, table.c.id == token)[0]).token

        return self._write(use)

    def audit(self, wish: AuditWish) -> Sequence[AuditEntry]:
        """Entries of the audit log, oldest first."""
        with reading(self._engine) as connection:
            return audit.page(connection, wish)

    def audit_anchor(self) -> AuditAnchor:
        """The last entry of those that were removed because they were old."""
        with reading(self._engine) as connection:
            return audit.anchor(connection)

    def prune_audit(self, before: datetime, most: int | None, now: datetime) -> int:
        """Remove entries from before a time, not beyond the number `most`; how many. An entry says so."""

        def begin(connection: Connection) -> AuditAnchor | None:
            last = audit.anchored(connection, before, most, now)
            if last is not None:
                said = f"ok, entries from before {before:%Y-%m-%dT%H:%M:%SZ} were removed; the last one had {last.hash}"
                entry = AuditEntry(at=now, who="", what=PRUNED, target=f"{last.number}", origin="", result=said)
                audit.add(connection, (entry,))
            return last

        self._write(begin)
        last, removed = self.audit_anchor(), 0
        while some := self._write(lambda connection: audit.remove(connection, last)):
            removed += some
        return removed

    def load_secrets(self) -> Sequence[StoredSecret]:
        """Every secret, as last committed."""
        with explained(self._engine), self._engine.connect() as connection:
            return tuple(map(_secret, _rows(connection, schema.secrets)))

    def load_secret(self, project: str, name: str) -> StoredSecret | None:
        """One secret; None where there is none of that name."""
        with explained(self._engine), self._engine.connect() as connection:
            found = _rows(connection, schema.secrets, *_is_secret(project, name))
        return _secret(found[0]) if found else None

    def load_presets(self) -> Sequence[Preset | RemovedPreset]:
        """The newest version of each preset, also of those that were removed."""
        with explained(self._engine), self._engine.connect() as connection:
            return presets.newest(connection)

    def preset_versions(self, which: PresetId) -> Sequence[Preset]:
        """All versions of a preset, the newest first."""
        with reading(self._engine) as connection:
            return presets.versions(connection, which)

    def preset_version(self, which: PresetId, version: int) -> Preset | None:
        """One version of a preset; None: there is none of that number."""
        with reading(self._engine) as connection:
            return next(iter(presets.versions(connection, which, version)), None)

    def close(self) -> None:
        """Let go of the database."""
        self._engine.dispose()

    def _apply(self, connection: Connection, change: TrustChange) -> None:  # noqa: C901 - a case for each kind of record
        match change:
            case Account():
                row = {key: value for key, value in asdict(change).items() if key != "grants"}
                self._put(connection, schema.accounts, row)
                connection.execute(delete(schema.grants).where(schema.grants.c.account == change.name))
                for project, access in change.grants.items():
                    grant = {"account": change.name, "project": project, "access": access}
                    connection.execute(insert(schema.grants), grant)
            case RemovedAccount() | RemovedToken() | RemovedSecret() | RemovedSubscription() | RemovedPolicy():
                connection.execute(_removal(change))
            case StoredToken():
                row = {**asdict(change.token), "digest": change.digest}
                self._put(connection, schema.tokens, {**row, "projects": list(change.token.projects)})
            case TokensUsed():
                _note_uses(connection, change)
            case StoredJoinToken():
                self._put(connection, schema.join_tokens, {**asdict(change.token), "digest": change.digest})
            case EnrolledNode():
                self._put(connection, schema.enrolled_nodes, asdict(change))
            case StoredSecret():
                self._put(connection, schema.secrets, {**asdict(change.secret), "sealed": change.sealed})
            case Subscription():
                kept = {column.name: getattr(change, column.name) for column in schema.subscriptions.columns}
                self._put(connection, schema.subscriptions, {**kept, "labels": dict(change.labels)})
            case JobPolicy():
                self._put(connection, schema.policies, asdict(change))
            case Preset() | RemovedPreset():
                presets.keep(connection, change)
            case _:
                assert_never(change)

    def _put(self, connection: Connection, table: Table, row: dict[str, Any]) -> None:
        connection.execute(upsert(self._engine.dialect, table), row)

    def _write(self, work: Callable[[Connection], T]) -> T:
        """Have something done in one transaction; on a full disk, with the room that is kept for that."""
        while True:
            try:
                with explained(self._engine), self._engine.begin() as connection:
                    done = work(connection)
                break
            except StoreFullError:
                if self._reserve is None or not self._reserve.release():
                    raise
        if self._reserve is not None:
            self._reserve.hold()
        return done


def _removal(change: RemovedAccount | RemovedToken | RemovedSecret | RemovedSubscription | RemovedPolicy) -> Delete:
    match change:
        case RemovedAccount():
            return delete(schema.accounts).where(schema.accounts.c.name == change.name)
        case RemovedToken():
            return delete(schema.tokens).where(schema.tokens.c.id == change.id)
        case RemovedSecret():
            return delete(schema.secrets).where(*_is_secret(change.project, change.name))
        case RemovedSubscription(project=project, name=name):
            table = schema.subscriptions
            return delete(table).where(table.c.project == project, table.c.name == name)
        case RemovedPolicy(project=project):
            return delete(schema.policies).where(schema.policies.c.project == project)
        case _:
            assert_never(change)


def _accounts(connection: Connection) -> tuple[Account, ...]:
    grants: dict[str, dict[str, Access]] = {}
    for row in _rows(connection, schema.grants):
        grants.setdefault(row["account"], {})[row["project"]] = Access(row["access"])
    return tuple(
        Account(
            name=row["name"],
            kind=AccountKind(row["kind"]),
            created_at=row["created_at"],
            grants=grants.get(row["name"], {}),
            identity=row["identity"],
        )
        for row in _rows(connection, schema.accounts)
    )


def _token(row: dict[str, Any]) -> StoredToken:
    digest, access, projects = row.pop("digest"), row.pop("access"), tuple(row.pop("projects") or ())
    known = IssuedToken(**row, access=None if access is None else Access(access), projects=projects)
    return StoredToken(digest=digest, token=known)


def _note_uses(connection: Connection, used: TokensUsed) -> None:
    if used.times:
        table = schema.tokens
        change = update(table).where(table.c.id == bindparam("shown")).values(used_at=bindparam("at"))
        connection.execute(change, [{"shown": id_, "at": at} for id_, at in used.times.items()])


def _join_token(row: dict[str, Any]) -> StoredJoinToken:
    return StoredJoinToken(digest=row.pop("digest"), token=IssuedJoinToken(**row))


def _secret(row: dict[str, Any]) -> StoredSecret:
    sealed = row.pop("sealed")
    return StoredSecret(
        secret=Secret(**{**row, "kind": SecretKind(row["kind"]), "keys": tuple(row["keys"])}), sealed=sealed
    )


def _subscription(row: dict[str, Any]) -> Subscription:
    lists = {key: tuple(row[key]) for key in ("to", "events", "owners")}
    words = {"target": SubscriptionTarget(row["target"]), "minimum": EventSeverity(row["minimum"])}
    return Subscription(**{**row, **lists, **words})


def _policy(row: dict[str, Any]) -> JobPolicy:
    rules = {key: PolicyRule(**{**said, "options": tuple(said["options"])}) for key, said in row["rules"].items()}
    return JobPolicy(**{**row, "rules": rules})


def _is_secret(project: str, name: str) -> tuple[ColumnElement[bool], ...]:
    return schema.secrets.c.project == project, schema.secrets.c.name == name


def _rows(connection: Connection, table: Table, *conditions: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - a condition of SQLAlchemy has no common type
    found = connection.execute(select(table).where(*conditions)).mappings()
    return [dict(row) for row in found]
