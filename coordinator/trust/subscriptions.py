"""Subscriptions of projects: what is known of them is in memory, their keys are sealed in the store as secrets are."""

import asyncio
from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from coordinator.completion import completed
from coordinator.trust.records import RemovedSecret, RemovedSubscription, TrustChange, TrustStore
from coordinator.trust.secrets.secrets import Secrets, key_place
from muster.domain.errors import ConflictError, ExhaustedError, MusterError, UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, AuditEntry, no_project
from muster.domain.fleet.project_use import ProjectUse, UseKind, use_by
from muster.domain.notifications.subscription import FollowedSubscription, Subscription

MOST_SUBSCRIPTIONS = 50
"""Most subscriptions of one project, or of the fleet."""
MOST_SUBSCRIPTIONS_OF_ALL = 500
"""Most subscriptions of all projects together, which consoles are told in one message."""


class Subscriptions:
    """Every subscription there is. Nobody reads keys but the consoles that deliver events."""

    def __init__(self, store: TrustStore, secrets: Secrets, projects: Container[str]) -> None:
        """`projects`: those that there are, kept by somebody else."""
        self._store = store
        self._secrets = secrets
        self._projects = projects
        self.writing = asyncio.Lock()
        """Held from the look at what is known until memory has what is durable."""
        self._known: dict[str, dict[str, Subscription]] = {}
        for each in store.load_trust().subscriptions:
            self._remember(each)

    def of_project(self, project: str) -> Mapping[str, Subscription]:
        """What is known of the subscriptions of a project, or of the fleet, by name."""
        return self._known.get(project, {})

    def of(self, project: str, name: str) -> Subscription:
        """One subscription; raises UnknownNameError."""
        found = self.of_project(project).get(name)
        if found is None:
            raise UnknownNameError(f"{_whose(project)} has no subscription {name[:80]!r}")
        return found

    def uses_of(self, project: str) -> tuple[ProjectUse, ...]:
        """The subscriptions that keep a project from being removed."""
        return use_by(UseKind.SUBSCRIPTION, sorted(self.of_project(project)))

    async def put(
        self,
        subscription: Subscription,
        keys: Sequence[str],
        entry: AuditEntry,
        replaces: Callable[[Subscription], None],
    ) -> None:
        """Have a subscription with these keys from now on; `replaces` raises where one of its name must stay.

        Raises UnknownNameError for a project that is not there, or ExhaustedError where there are too many.
        """
        project, name = subscription.project, subscription.name
        async with self.writing:
            if project != EVERYWHERE and project not in self._projects:
                raise UnknownNameError(no_project(project))
            before = self.of_project(project).get(name)
            if before is not None:
                replaces(before)
            else:
                self._require_room(project)
            values = {str(place): key.encode() for place, key in enumerate(keys)}
            sealed = self._secrets.sealed_keys(project, name, values, entry.at, entry.who)
            await self._commit([subscription, sealed], entry)
            self._remember(subscription)

    async def remove(self, project: str, name: str, entry: AuditEntry, removes: Callable[[Subscription], None]) -> None:
        """Forget a subscription and its keys; `removes` raises where it must stay. Raises UnknownNameError."""
        async with self.writing:
            removes(self.of(project, name))
            forgotten = RemovedSubscription(project=project, name=name)
            await self._commit([forgotten, RemovedSecret(project=project, name=key_place(name))], entry)
            del self._known[project][name]

    async def followed(self, seen: Callable[[str], bool]) -> tuple[FollowedSubscription, ...]:
        """The subscriptions of projects that are `seen`, with their keys; none of which nobody can open the keys."""
        found = [each for each in self._all() if seen(each.project)]
        return tuple([FollowedSubscription(subscription=each, keys=await self._keys(each)) for each in found])

    async def _keys(self, subscription: Subscription) -> tuple[str, ...]:
        try:
            values = await self._secrets.opened_keys(subscription.project, subscription.name)
        except MusterError:
            return ()
        return tuple(values[place].decode() for place in sorted(values, key=int))

    def _all(self) -> Iterator[Subscription]:
        for project in sorted(self._known):
            yield from (each for _, each in sorted(self._known[project].items()))

    def _require_room(self, project: str) -> None:
        if len(self.of_project(project)) >= MOST_SUBSCRIPTIONS:
            raise ExhaustedError(f"{_whose(project)} has {MOST_SUBSCRIPTIONS} subscriptions, which is the most")
        if sum(map(len, self._known.values())) >= MOST_SUBSCRIPTIONS_OF_ALL:
            raise ExhaustedError(f"all projects have {MOST_SUBSCRIPTIONS_OF_ALL} subscriptions, which is the most")

    async def _commit(self, changes: Sequence[TrustChange], entry: AuditEntry) -> None:
        """Make a change durable; a caller who goes away meanwhile still learns whether it is."""
        await completed(asyncio.to_thread(self._store.commit_trust, changes, (entry,)))

    def _remember(self, subscription: Subscription) -> None:
        self._known.setdefault(subscription.project, {})[subscription.name] = subscription


def refuse_to_replace(subscription: Subscription) -> None:
    """Raise ConflictError, as a subscription of that name is there."""
    raise ConflictError(
        f"{_whose(subscription.project)} has a subscription {subscription.name!r} already; say that it is to be "
        "replaced"
    )


def _whose(project: str) -> str:
    return "the fleet" if project == EVERYWHERE else f"project {project}"
