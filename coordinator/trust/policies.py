"""Policies of the fleet and of projects, which all jobs keep that are submitted or changed."""

import asyncio
from collections.abc import Container

from coordinator.completion import completed
from coordinator.trust.records import RemovedPolicy, TrustChange, TrustStore
from muster.domain.errors import UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, AuditEntry, no_project
from muster.domain.fleet.policies.policy import JobPolicy
from muster.domain.fleet.project_use import ProjectUse, UseKind, use_by


class Policies:
    """Every policy there is: at most one of the fleet, and one of each project."""

    def __init__(self, store: TrustStore, projects: Container[str]) -> None:
        """`projects`: those that there are, kept by somebody else."""
        self._store = store
        self._projects = projects
        self.writing = asyncio.Lock()
        """Held from the look at what is known until memory has what is durable."""
        self._known = {each.project: each for each in store.load_trust().policies}

    def __len__(self) -> int:
        """How many there are."""
        return len(self._known)

    def of(self, project: str) -> JobPolicy:
        """The policy of a project alone, or with `*` of the fleet; one without rules where none was set."""
        return self._known.get(project) or JobPolicy(project=project)

    def that_hold(self, project: str) -> tuple[JobPolicy, ...]:
        """The policies that jobs of a project keep, all of them: that of the fleet first."""
        return tuple(self._known[each] for each in dict.fromkeys((EVERYWHERE, project)) if each in self._known)

    def uses_of(self, project: str) -> tuple[ProjectUse, ...]:
        """The policy that keeps a project from being removed."""
        return use_by(UseKind.POLICY, [project] if project in self._known else [])

    async def put(self, policy: JobPolicy, entry: AuditEntry) -> None:
        """Have this policy from now on; one without rules is forgotten. Jobs that were accepted stay.

        Raises UnknownNameError for a project that is not there.
        """
        async with self.writing:
            if policy.project != EVERYWHERE and policy.project not in self._projects:
                raise UnknownNameError(no_project(policy.project))
            change: TrustChange = policy if policy.rules else RemovedPolicy(project=policy.project)
            await completed(asyncio.to_thread(self._store.commit_trust, (change,), (entry,)))
            if policy.rules:
                self._known[policy.project] = policy
            else:
                self._known.pop(policy.project, None)
