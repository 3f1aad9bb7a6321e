"""Accounts: the part of the registry that tells who may do what where."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TypeVar

from coordinator.trust.changes import TrustChanges
from coordinator.trust.records import TrustSnapshot
from muster.domain.errors import ConflictError, InvalidJobError, UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, Access, Account, AuditEntry, Permissions, Project
from muster.domain.jobs.rules.job_values import LABEL

Key = TypeVar("Key", bound=str)
Value = TypeVar("Value")

_PROJECT = re.compile(LABEL)
_NAME = re.compile(r"[a-z0-9]([a-z0-9._@-]{0,61}[a-z0-9])?")


class Accounts:
    """Everybody who has a name here. Changing waits until the change is durable."""

    def __init__(self, kept: TrustSnapshot, changes: TrustChanges, projects: Mapping[str, Project]) -> None:
        """`projects`: those that there are, kept by somebody else."""
        self._changes = changes
        self.accounts = {account.name: account for account in kept.accounts}
        self.projects = projects

    async def add_account(self, account: Account, entry: AuditEntry) -> Account:
        """A new account; ConflictError if its name is taken, UnknownNameError for a project that is not there."""
        named(account.name, "an account")
        async with self._changes.writing:
            self.require_projects(account.grants)
            if account.name in self.accounts:
                raise ConflictError(f"there is an account {account.name} already")
            await self._changes.commit([account], entry)
            self.accounts[account.name] = account
        return account

    def account(self, name: str) -> Account:
        """The account of that name; UnknownNameError."""
        return kept_as(self.accounts, name, "account")

    def identity_of(self, name: str) -> str:
        """The person of an account at the identity provider; empty: it is not known there, or it is no account."""
        account = self.accounts.get(name)
        return "" if account is None else account.identity

    async def grant(self, name: str, project: str, access: Access | None, entry: AuditEntry) -> Account:
        """The account with this access to a project from now on; None takes it away."""
        async with self._changes.writing:
            account = self.account(name)
            if account.identity and access is not None:
                raise ConflictError(
                    f"{name} logs in through the identity provider, so what it may follows from its groups there: name "
                    "them with --oidc-grant; access that it has can be taken away, until it logs in again",
                )
            if access is not None or project not in account.grants:
                self.require_projects((project,))
            grants = {key: value for key, value in account.grants.items() if key != project}
            if access is not None:
                grants[project] = access
            changed = replace(account, grants=grants)
            self._keep_an_admin({**self.accounts, name: changed})
            await self._changes.commit([changed], entry)
            self.accounts[name] = changed
        self._changes.on_less(None)
        return changed

    async def take_grants(self, name: str, entry: AuditEntry) -> None:
        """The account may nothing from now on."""
        async with self._changes.writing:
            changed = replace(self.account(name), grants={})
            await self._changes.commit([changed], entry)
            self.accounts[name] = changed
        self._changes.on_less(None)

    def permissions_of(self, project: str) -> Permissions:
        """What the containers of a project may do beyond the default."""
        return kept_as(self.projects, project, "project").permissions

    def require_projects(self, names: Iterable[str]) -> None:
        """Raise UnknownNameError unless all of these projects are there."""
        for project in names:
            if project != EVERYWHERE:
                kept_as(self.projects, project, "project")

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


def project_name(name: str) -> str:
    """A name that a project may have; raises InvalidJobError."""
    return named(name, "a project", _PROJECT)


def kept_as(kept: Mapping[Key, Value], name: Key, what: str) -> Value:
    """What is kept under a name; raises UnknownNameError."""
    found = kept.get(name)
    if found is None:
        raise UnknownNameError(f"there is no {what} {name!r}")
    return found


def _is_admin(account: Account) -> bool:
    return account.grants.get(EVERYWHERE) is Access.ADMIN
