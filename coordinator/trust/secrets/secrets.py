"""The secrets of projects: what is known of them is in memory, their values are in the store, sealed."""

import asyncio
import json
from collections.abc import Collection, Container, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Protocol

from coordinator.completion import completed
from coordinator.trust.records import RemovedSecret, StoredSecret, TrustChange
from coordinator.trust.secrets import sealing_keys
from muster.domain.errors import ConflictError, ExhaustedError, InvalidJobError, UnknownNameError
from muster.domain.fleet.access import AuditEntry, no_project
from muster.domain.fleet.project_use import ProjectUse, UseKind, use_by
from muster.domain.fleet.secret import (
    KEY_RULES,
    MAX_SECRET,
    MAX_VALUE,
    DeliveredSecret,
    Secret,
    SecretKind,
    problem_with_keys,
)
from muster.domain.jobs.image import is_server, serves
from muster.domain.jobs.job import Role
from muster.domain.jobs.secret_use import SecretUse
from muster.trust.sealing import SealError, SealingKey, key_name, seal, unseal

MAX_SECRETS = 200
"""Most secrets of one project."""
_OF_SUBSCRIPTION = "notify/"
"""How the names begin under which keys of subscriptions lie."""


class SecretStore(Protocol):
    """Keeps secrets durably. Synchronous, each call from a thread of its own."""

    def load_secrets(self) -> Sequence[StoredSecret]:
        """Every secret, as last committed."""
        ...

    def load_secret(self, project: str, name: str) -> StoredSecret | None:
        """One secret; None where there is none of that name."""
        ...

    def commit_trust(self, changes: Sequence[TrustChange], entries: Sequence[AuditEntry] = ()) -> None:
        """Keep all changes and audit entries in one transaction."""
        ...


class Secrets:
    """Every secret there is. Nobody reads a value but the executions that get it."""

    def __init__(self, store: SecretStore, keys: Sequence[SealingKey], projects: Container[str]) -> None:
        """`projects`: those that there are, kept by somebody else."""
        self._store = store
        self._keys = tuple(keys)
        self._projects = projects
        self.writing = asyncio.Lock()
        """Held from the look at what is known until memory has what is durable."""
        self._known: dict[str, dict[str, Secret]] = {}
        for stored in store.load_secrets():
            if not stored.secret.name.startswith(_OF_SUBSCRIPTION):
                self._remember(stored.secret)

    @classmethod
    def open(cls, store: SecretStore, file: Path, projects: Container[str]) -> "Secrets":
        """The secrets of a store, with the key in that file; raises MusterError where that is not the one."""
        kept = store.load_secrets()
        keys = sealing_keys.load_or_make(file, {key_name(each.sealed) for each in kept})
        if len(keys) > 1:
            store.commit_trust([sealed_anew(each, keys) for each in kept])
            keys = sealing_keys.keep_keys(file, keys[:1])
        return cls(store, keys, projects)

    def of_project(self, project: str) -> Mapping[str, Secret]:
        """What is known of the secrets of a project, by name."""
        return self._known.get(project, {})

    def uses_of(self, project: str) -> tuple[ProjectUse, ...]:
        """The secrets that keep a project from being removed."""
        return use_by(UseKind.SECRET, sorted(self.of_project(project)))

    async def put(self, secret: Secret, values: Mapping[str, bytes], entry: AuditEntry, *, again: bool) -> Secret:
        """The secret with these values from now on; one of its name is replaced if it may be put `again`.

        Raises InvalidJobError, ConflictError, UnknownNameError for a project that is not there, or ExhaustedError where
        it has too many.
        """
        _check(secret, values)
        async with self.writing:
            if secret.project not in self._projects:
                raise UnknownNameError(no_project(secret.project))
            there = self.of_project(secret.project)
            before = there.get(secret.name)
            if before is not None and not again:
                raise ConflictError(
                    f"project {secret.project} has a secret {secret.name!r} already; say that it is to be replaced"
                )
            if before is None and len(there) >= MAX_SECRETS:
                raise ExhaustedError(f"project {secret.project} has {MAX_SECRETS} secrets, which is the most")
            fresh = secret if before is None else replace(secret, created_at=before.created_at)
            await self._commit(_sealed(fresh, values, self._keys[0]), entry)
            self._remember(fresh)
        return fresh

    async def remove(self, project: str, name: str, entry: AuditEntry) -> None:
        """Forget a secret; UnknownNameError."""
        async with self.writing:
            if name not in self.of_project(project):
                raise UnknownNameError(f"project {project} has no secret {name[:80]!r}")
            await self._commit(RemovedSecret(project=project, name=name), entry)
            del self._known[project][name]

    async def delivered(self, project: str, role: Role) -> tuple[DeliveredSecret, ...]:
        """What an execution of a role gets: of each secret that it names, the values that it names.

        And the whole of those that are for the registry of its image, the one that says most of its name first.
        Raises ConflictError for one that is not there any more, or that cannot be opened.
        """
        pulling = _for_image(self.of_project(project), role.image)
        named = {use.secret: use for use in role.secrets if use.secret not in pulling}
        whole = [await self._opened(project, name) for name in pulling]
        _check_uses(project, {secret.name: secret for secret in whole}, role.secrets)
        return (*whole, *[_part(project, await self._opened(project, name), use) for name, use in named.items()])

    async def for_data(self, project: str, role: Role) -> tuple[DeliveredSecret, ...]:
        """What opens the stores of a role's inputs, and its repository until that was fetched.

        Raises ConflictError as above.
        """
        names = {each.secret: None for each in role.inputs if each.secret}
        if role.code is not None and role.code.is_awaited and role.code.secret:
            names[role.code.secret] = None
        return tuple([await self._opened(project, name) for name in names])

    async def for_outputs(self, project: str, name: str) -> DeliveredSecret:
        """What opens the store to which outputs, or checkpoints, go; raises ConflictError as above."""
        return await self._opened(project, name)

    def sealed_keys(
        self, project: str, subscription: str, values: Mapping[str, bytes], at: datetime, by: str
    ) -> StoredSecret:
        """The keys of a subscription as they are stored: sealed like secrets, under a name that no job can say."""
        secret = Secret(
            project=project,
            name=key_place(subscription),
            kind=SecretKind.GENERIC,
            keys=tuple(sorted(values)),
            created_at=at,
            updated_at=at,
            updated_by=by,
        )
        return _sealed(secret, values, self._keys[0])

    async def opened_keys(self, project: str, subscription: str) -> Mapping[str, bytes]:
        """The keys of a subscription; raises ConflictError where they cannot be opened."""
        return (await self._opened(project, key_place(subscription))).values

    async def _commit(self, change: TrustChange, entry: AuditEntry) -> None:
        """Make a change durable; a caller who goes away meanwhile still learns whether it is."""
        await completed(asyncio.to_thread(self._store.commit_trust, [change], (entry,)))

    async def _opened(self, project: str, name: str) -> DeliveredSecret:
        stored = await asyncio.to_thread(self._store.load_secret, project, name)
        if stored is None:
            raise ConflictError(
                f"project {project} has no secret {name!r} any more; put it back with `muster secrets set {name} "
                f"--project {project}`"
            )
        try:
            values = _opened(stored, self._keys)
        except SealError as error:
            raise ConflictError(
                f"the secret {name!r} of project {project} cannot be opened: {error}; set it anew"
            ) from None
        return DeliveredSecret(name=name, kind=stored.secret.kind, values=values)

    def _remember(self, secret: Secret) -> None:
        self._known.setdefault(secret.project, {})[secret.name] = secret


def key_place(subscription: str) -> str:
    """The name under which the keys of a subscription are sealed; no secret that jobs use has one like it."""
    return f"{_OF_SUBSCRIPTION}{subscription}"


def rotate_key(store: SecretStore, file: Path, entry: AuditEntry) -> None:
    """Have the next `Secrets.open` seal everything with a new key."""
    kept = store.load_secrets()
    store.commit_trust([], [entry])
    sealing_keys.add_key(file, sealing_keys.load_or_make(file, {key_name(each.sealed) for each in kept}))


def forget_unreadable(store: SecretStore, file: Path, entry: AuditEntry) -> Sequence[Secret]:
    """The secrets that no key in the file opens, which are forgotten now; where the file is gone, one is made."""
    names = {key.name for key in sealing_keys.load_or_make_any(file)}
    lost = [each.secret for each in store.load_secrets() if key_name(each.sealed) not in names]
    store.commit_trust(
        [RemovedSecret(project=each.project, name=each.name) for each in lost],
        [replace(entry, target=f"{each.project}/{each.name}") for each in lost],
    )
    return lost


def sealed_anew(stored: StoredSecret, keys: Sequence[SealingKey]) -> StoredSecret:
    """The same secret under the first of the keys."""
    return _sealed(stored.secret, _opened(stored, keys), keys[0])


def _sealed(secret: Secret, values: Mapping[str, bytes], key: SealingKey) -> StoredSecret:
    content = json.dumps({name: value.hex() for name, value in values.items()}).encode()
    return StoredSecret(secret=secret, sealed=seal(key, content, _place(secret)))


def _opened(stored: StoredSecret, keys: Sequence[SealingKey]) -> dict[str, bytes]:
    content: Mapping[str, str] = json.loads(unseal(keys, stored.sealed, _place(stored.secret)))
    return {name: bytes.fromhex(value) for name, value in content.items()}


def _place(secret: Secret) -> bytes:
    """What the values are bound to: another row, kind or server cannot have them."""
    return json.dumps([secret.project, secret.name, secret.kind, sorted(secret.keys), secret.server]).encode()


def _check(secret: Secret, values: Mapping[str, bytes]) -> None:
    """Raise InvalidJobError, which says nothing of the values."""
    problem = (
        problem_with_keys(secret.kind, values) or _problem_with_sizes(values) or _problem_with_words(secret, values)
    )
    if problem is not None:
        raise InvalidJobError(f"the secret {secret.name!r} {problem}")


def _problem_with_sizes(values: Mapping[str, bytes]) -> str | None:
    for key, value in values.items():
        if not value:
            return f"has nothing as its {key!r}"
        if len(value) > MAX_VALUE:
            return f"has {len(value)} bytes as its {key!r}; {MAX_VALUE // 1024} KiB are the most"
    size = sum(map(len, values.values()))
    return f"has {size} bytes in all; {MAX_SECRET // 1024} KiB are the most" if size > MAX_SECRET else None


def _problem_with_words(secret: Secret, values: Mapping[str, bytes]) -> str | None:
    """What is handed on line by line, or in an address, must be a line of text."""
    if secret.kind is SecretKind.GENERIC:
        return None
    for key in KEY_RULES[secret.kind].known & values.keys() - {"ssh-key", "known-hosts", "ca"}:
        if not _is_line(values[key]):
            return f"must have one line of text as its {key!r}"
    if "server" not in values:
        return None
    paths = secret.kind is SecretKind.REGISTRY
    if not is_server(secret.server) or ("/" in secret.server.partition("://")[2] and not paths):
        return f"is for {secret.server[:80]!r}, which is no server like {'ghcr.io' if paths else 'git.example.org'}"
    return None


def _is_line(value: bytes) -> bool:
    try:
        return value.decode().isprintable()
    except UnicodeDecodeError:
        return False


def _for_image(known: Mapping[str, Secret], image: str | None) -> list[str]:
    """Names of the credentials for the registry of an image."""
    if image is None:
        return []
    found = [each for each in known.values() if each.kind is SecretKind.REGISTRY and serves(each.server, image)]
    return [each.name for each in sorted(found, key=lambda each: (-len(each.server), each.name))]


def _part(project: str, secret: DeliveredSecret, use: SecretUse) -> DeliveredSecret:
    """The part of a secret that an execution is to see."""
    _check_uses(project, {secret.name: secret}, (use,))
    keys: Collection[str] = secret.values if use.directory else set(use.env.values())
    return replace(secret, values={key: secret.values[key] for key in keys})


def _check_uses(project: str, secrets: Mapping[str, DeliveredSecret], uses: Sequence[SecretUse]) -> None:
    """Raise ConflictError where a secret has changed so that it cannot be given as was agreed."""
    for use in uses:
        values = secrets[use.secret].values if use.secret in secrets else None
        for variable, key in use.env.items() if values is not None else ():
            value = values.get(key) if values else None
            if value is None:
                raise ConflictError(f"the secret {use.secret!r} of project {project} has no {key!r} any more")
            if not _fits_variable(value):
                raise ConflictError(
                    f"the secret {use.secret!r} of project {project} has a {key!r} that {variable} cannot hold: no "
                    "text, or with a NUL character; use a file"
                )


def _fits_variable(value: bytes) -> bool:
    try:
        return "\0" not in value.decode()
    except UnicodeDecodeError:
        return False
