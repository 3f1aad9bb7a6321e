"""The registry: who is known, kept in memory for every call to look at, written rarely and by one at a time."""

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TypeVar

from coordinator.trust.caller import Caller, CallerKind
from coordinator.trust.records import (
    AuditWish,
    RemovedAccount,
    RemovedToken,
    StoredJoinToken,
    StoredToken,
    TrustChange,
    TrustStore,
)
from muster.domain.access import (
    EVERYWHERE,
    USED_UP,
    Access,
    Account,
    AccountKind,
    AuditEntry,
    EnrolledNode,
    IssuedJoinToken,
    IssuedToken,
    Policy,
    Project,
)
from muster.domain.errors import ConflictError, InvalidJobError, PermissionDeniedError, UnknownNameError
from muster.domain.ids import NodeId
from muster.domain.job import DEFAULT_PROJECT
from muster.trust.tokens import ApiToken, JoinToken, TokenFormError, digest, is_secret_of, parse_api_token

Key = TypeVar("Key", bound=str)
Value = TypeVar("Value")

ADMIN = "admin"
"""The first account."""
LONGEST_TTL = timedelta(days=3650)

_NO_JOIN = "the join token is not known, used up, expired or revoked: ask for a new one (`muster nodes token create`)"
_PROJECT = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_NAME = re.compile(r"[a-z0-9]([a-z0-9._@-]{0,61}[a-z0-9])?")


class RefusedError(PermissionDeniedError):
    """A token or certificate does not count; the message may be shown to a stranger, `cause` stays in the audit log."""

    def __init__(self, message: str, cause: str, who: str = "") -> None:
        super().__init__(message)
        self.cause = cause
        self.who = who


class Registry:
    """Everybody who is known. Reading is a look into memory; changing waits until the change is durable."""

    def __init__(self, store: TrustStore, now: datetime) -> None:
        self._store = store
        self._writing = asyncio.Lock()
        kept = store.load_trust()
        self.accounts = {account.name: account for account in kept.accounts}
        self.tokens = {stored.token.id: stored for stored in kept.tokens}
        self.join_tokens = {stored.token.id: stored for stored in kept.join_tokens}
        self.projects = {project.name: project for project in kept.projects}
        self.nodes = {node.name: node for node in kept.nodes}
        self.projects.setdefault(DEFAULT_PROJECT, Project(name=DEFAULT_PROJECT, created_at=now))
        self.on_less: Callable[[], None] = lambda: None
        """Called when somebody may do less than before."""

    # who calls

    def caller_with(self, text: str, now: datetime) -> Caller:
        """The caller who shows an API token; raises RefusedError."""
        refusal = "the token is not known, has expired or was revoked: log in again with `muster login`"
        try:
            shown = parse_api_token(text)
        except TokenFormError:
            raise RefusedError(refusal, "malformed token") from None
        stored = self.tokens.get(shown.id)
        if stored is None or not is_secret_of(shown.secret, stored.digest):
            raise RefusedError(refusal, "wrong token")
        token = stored.token
        if not token.valid(now):
            cause = "revoked token" if token.revoked_at else "expired token"
            raise RefusedError(refusal, f"{cause} {token.id}", token.account)
        account = self.accounts[token.account]
        kind = CallerKind.USER if account.kind is AccountKind.USER else CallerKind.SERVICE
        return Caller(kind=kind, name=account.name, grants=account.grants, token=token.id, until=token.expires_at)

    def node_with(self, name: NodeId | None, key: str, until: datetime) -> Caller:
        """The node that shows a certificate of this authority; raises RefusedError."""
        who = f"node/{name}"
        node = None if name is None else self.nodes.get(name)
        if node is None:
            raise RefusedError(f"node {name} has not joined this fleet", "unknown node", who)
        if node.revoked_at is not None:
            raise RefusedError(f"node {name} was sent away; it may join again with a new token", "revoked node", who)
        if node.key != key:
            raise RefusedError(f"node {name} has joined anew with another key", "outdated key", who)
        return Caller(kind=CallerKind.NODE, name=who, node=node.name, key=key, until=until)

    def still_counts(self, caller: Caller, now: datetime) -> bool:
        """Whether somebody who was let in would be let in again, with no less than he had."""
        if caller.kind is CallerKind.NODE:
            assert caller.node is not None
            node = self.nodes.get(caller.node)
            return node is not None and node.revoked_at is None and node.key == caller.key
        if not caller.token:
            return True
        stored, account = self.tokens.get(caller.token), self.accounts.get(caller.name)
        return (
            stored is not None and account is not None and stored.token.valid(now) and account.grants == caller.grants
        )

    # accounts

    async def add_account(self, account: Account, entry: AuditEntry) -> Account:
        """A new account; ConflictError if its name is taken."""
        named(account.name, "an account")
        async with self._writing:
            if account.name in self.accounts:
                raise ConflictError(f"there is an account {account.name} already")
            await self._commit([account], entry)
            self.accounts[account.name] = account
        return account

    async def add_first_admin(self, admin: Account, secret: ApiToken, token: IssuedToken, entry: AuditEntry) -> None:
        """The first account and its token, both or none."""
        stored = StoredToken(token=token, digest=digest(secret.secret))
        async with self._writing:
            await self._commit([*self.projects.values(), admin, stored], entry)
            self.accounts[admin.name], self.tokens[token.id] = admin, stored

    async def remove_account(self, name: str, kind: AccountKind, entry: AuditEntry) -> None:
        """Forget an account and its tokens; the last one that may do everything stays."""
        async with self._writing:
            account = self.account(name)
            if account.kind is not kind:
                raise UnknownNameError(f"{name} is a {account.kind} account, not a {kind} account")
            self._keep_an_admin({**self.accounts, name: replace(account, grants={})})
            await self._commit([RemovedAccount(name=name)], entry)
            del self.accounts[name]
            for token in [id_ for id_, stored in self.tokens.items() if stored.token.account == name]:
                del self.tokens[token]
        self.on_less()

    def account(self, name: str) -> Account:
        """The account of that name; UnknownNameError."""
        return _known(self.accounts, name, "account")

    async def grant(self, name: str, project: str, access: Access | None, entry: AuditEntry) -> Account:
        """The account with this access to a project from now on; None takes it away."""
        async with self._writing:
            account = self.account(name)
            if account.identity and access is not None:
                raise ConflictError(
                    f"{name} logs in through the identity provider, so what it may follows from its groups there: name "
                    "them with --oidc-grant; access that it has can be taken away, until it logs in again",
                )
            if project != EVERYWHERE:
                _known(self.projects, project, "project")
            grants = {key: value for key, value in account.grants.items() if key != project}
            if access is not None:
                grants[project] = access
            changed = replace(account, grants=grants)
            self._keep_an_admin({**self.accounts, name: changed})
            await self._commit([changed], entry)
            self.accounts[name] = changed
        self.on_less()
        return changed

    async def take_grants(self, name: str, entry: AuditEntry) -> None:
        """The account may nothing from now on."""
        async with self._writing:
            changed = replace(self.account(name), grants={})
            await self._commit([changed], entry)
            self.accounts[name] = changed
        self.on_less()

    async def add_project(self, name: str, now: datetime, entry: AuditEntry) -> Project:
        """A new project; ConflictError if it is there."""
        named(name, "a project", _PROJECT)
        async with self._writing:
            if name in self.projects:
                raise ConflictError(f"there is a project {name} already")
            project = Project(name=name, created_at=now)
            await self._commit([project], entry)
            self.projects[name] = project
        return project

    def policy_of(self, project: str) -> Policy:
        """What the containers of a project may do beyond the default."""
        return _known(self.projects, project, "project").policy

    async def set_policy(self, name: str, policy: Policy, entry: Callable[[Policy], AuditEntry]) -> Project:
        """The project with this policy in place of what it had, of which `entry` is made."""
        async with self._writing:
            project = _known(self.projects, name, "project")
            changed = replace(project, policy=policy)
            await self._commit([changed], entry(project.policy))
            self.projects[name] = changed
        return changed

    def require_projects(self, grants: Mapping[str, Access]) -> None:
        """Raise UnknownNameError unless all of these projects are there."""
        for project in grants.keys() - {EVERYWHERE}:
            _known(self.projects, project, "project")

    # tokens

    async def add_token(self, secret: ApiToken, token: IssuedToken, entry: AuditEntry) -> IssuedToken:
        """Let an account be known by this token from now on."""
        stored = StoredToken(token=token, digest=digest(secret.secret))
        async with self._writing:
            self.account(token.account)  # nobody removes it meanwhile: the token would be that of the next of its name
            await self._commit([stored], entry)
            self.tokens[token.id] = stored
        return token

    async def log_in(
        self,
        decide: Callable[[], Account],
        secret: ApiToken,
        token: IssuedToken,
        done: Callable[[Account], AuditEntry],
    ) -> IssuedToken:
        """Let an account, new or changed as `decide` has it, be known by this token; its older ones that have ended go.

        The last one who may do everything may lose that here: the identity provider outweighs what was before.
        """
        async with self._writing:
            account = decide()
            before = self.accounts.get(account.name)
            token = replace(token, account=account.name)
            stored = StoredToken(token=token, digest=digest(secret.secret))
            ended = [
                RemovedToken(id=each.token.id)
                for each in self.tokens.values()
                if (each.token.account, each.token.note) == (account.name, token.note)
                and not each.token.valid(token.created_at)
            ]
            await self._commit([account, *ended, stored], done(account))
            self.accounts[account.name], self.tokens[token.id] = account, stored
            for gone in ended:
                del self.tokens[gone.id]
        if before is not None and before.grants != account.grants:
            self.on_less()
        return token

    async def revoke_token(self, token: str, now: datetime, entry: AuditEntry) -> IssuedToken:
        """A token that does not count any more."""
        async with self._writing:
            stored = _known(self.tokens, token, "token")
            revoked = replace(stored, token=replace(stored.token, revoked_at=stored.token.revoked_at or now))
            await self._commit([revoked], entry)
            self.tokens[token] = revoked
        self.on_less()
        return revoked.token

    # nodes

    async def add_join_token(self, secret: JoinToken, token: IssuedJoinToken, entry: AuditEntry) -> IssuedJoinToken:
        """Let nodes join with this token from now on."""
        stored = StoredJoinToken(token=token, digest=digest(secret.secret))
        async with self._writing:
            await self._commit([stored], entry)
            self.join_tokens[token.id] = stored
        return token

    async def revoke_join_token(self, token: str, now: datetime, entry: AuditEntry) -> IssuedJoinToken:
        """A token with which nobody joins any more; who has joined stays."""
        async with self._writing:
            stored = _known(self.join_tokens, token, "join token")
            revoked = replace(stored, token=replace(stored.token, revoked_at=stored.token.revoked_at or now))
            await self._commit([revoked], entry)
            self.join_tokens[token] = revoked
        return revoked.token

    def join_token(self, shown: JoinToken) -> StoredJoinToken:
        """What is kept of a join token, used up or not; RefusedError for one that nobody has made."""
        stored = self.join_tokens.get(shown.id)
        if stored is None or not is_secret_of(shown.secret, stored.digest):
            raise RefusedError(_NO_JOIN, "wrong join token")
        return stored

    async def enrol(self, shown: JoinToken, name: NodeId, key: str, entry: AuditEntry) -> EnrolledNode:
        """Take a node in on a token; raises RefusedError, and ConflictError for a name that another node has."""
        async with self._writing:
            stored = self.join_token(shown)
            known = self.nodes.get(name)
            again = known is not None and (known.key, known.token, known.revoked_at) == (key, shown.id, None)
            cause = stored.token.refusal(entry.at)
            if cause is not None and not (again and cause == USED_UP):
                raise RefusedError(_NO_JOIN, f"join token {shown.id} {cause}")
            if known is not None and again:
                return known  # it asks once more because the answer got lost
            if known is not None and known.revoked_at is None and known.key != key:
                raise ConflictError(
                    f"there is a node {name} with another key; if that one is gone for good, say `muster nodes revoke "
                    f"{name}` and join again, else give this one another --name",
                )
            node = EnrolledNode(name=name, key=key, enrolled_at=entry.at, token=shown.id, labels=stored.token.labels)
            used = await asyncio.to_thread(self._store.enrol, shown.id, node, entry)
            if used is None:
                raise RefusedError(_NO_JOIN, f"join token {shown.id} has no use left")
            self.join_tokens[shown.id] = replace(stored, token=used)
            self.nodes[name] = node
        self.on_less()
        return node

    async def revoke_node(self, name: NodeId, now: datetime, entry: AuditEntry) -> EnrolledNode:
        """A node whose certificate does not count any more."""
        async with self._writing:
            node = _known(self.nodes, name, "enrolled node")
            revoked = replace(node, revoked_at=node.revoked_at or now)
            await self._commit([revoked], entry)
            self.nodes[name] = revoked
        self.on_less()
        return revoked

    def labels_of(self, node: NodeId) -> Mapping[str, str]:
        """What a node carries by the token with which it joined."""
        return self.nodes[node].labels if node in self.nodes else {}

    # the audit log

    async def note(self, entries: Sequence[AuditEntry]) -> None:
        """Keep entries."""
        await asyncio.to_thread(self._store.commit_trust, (), entries)

    async def audit(self, wish: AuditWish) -> Sequence[AuditEntry]:
        """Entries of the audit log, oldest first."""
        return await asyncio.to_thread(self._store.audit, wish)

    async def _commit(self, changes: Sequence[TrustChange], entry: AuditEntry) -> None:
        await asyncio.to_thread(self._store.commit_trust, changes, (entry,))

    def _keep_an_admin(self, accounts: Mapping[str, Account]) -> None:
        had, has = (any(_is_admin(account) for account in each.values()) for each in (self.accounts, accounts))
        if had and not has:
            raise ConflictError("that would leave nobody who may do everything; make another admin first")


def named(name: str, what: str, pattern: re.Pattern[str] = _NAME) -> str:
    """A name that an account or project may have; raises InvalidJobError."""
    if not pattern.fullmatch(name):
        inner = "hyphens" if pattern is _PROJECT else "dots, hyphens, underscores or @"
        raise InvalidJobError(
            f"{name[:80]!r} is no name for {what}: at most 63 lower-case letters, digits and inner {inner}",
        )
    return name


def _known(kept: Mapping[Key, Value], name: Key, what: str) -> Value:
    found = kept.get(name)
    if found is None:
        raise UnknownNameError(f"there is no {what} {name!r}")
    return found


def _is_admin(account: Account) -> bool:
    return account.grants.get(EVERYWHERE) is Access.ADMIN
