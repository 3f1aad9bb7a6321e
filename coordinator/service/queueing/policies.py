"""Operations on policies: what jobs of the fleet, and of a project, may say."""

import asyncio
from collections.abc import Mapping, Sequence

from coordinator.clock import wall_time
from coordinator.service.operations import Operations
from coordinator.trust.caller import Caller
from coordinator.trust.policies import Policies
from muster.domain.errors import UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, Access, no_project
from muster.domain.fleet.policies.policy import JobPolicy, PolicyRule, changed_rules
from muster.jobfile.policies import load_policy_rules, refuse_policy_faults


class PolicyOperations:
    """What callers may do with policies; the project `*` is the fleet."""

    def __init__(self, operations: Operations, policies: Policies) -> None:
        self._operations = operations
        self._policies = policies

    async def get(self, caller: Caller, project: str) -> Sequence[JobPolicy]:
        """The policies that jobs of a project keep, that of the fleet first; it concerns whoever has jobs.

        Raises UnknownNameError for a project of which the caller must not know.
        """
        async with self._operations.begin(caller, "policies.get", project):
            if project != EVERYWHERE and not caller.may(Access.VIEWER, project):
                raise UnknownNameError(no_project(project))
            return self._policies.that_hold(project)

    async def set(self, caller: Caller, project: str, rules: Mapping[str, PolicyRule]) -> JobPolicy:
        """The policy with these rules and no others; without rules it is forgotten. Jobs that were accepted stay."""
        async with self._operations.begin(caller, "policies.set", project) as operation:
            policy = JobPolicy(project=project, rules=rules, updated_at=wall_time(), updated_by=caller.name)
            await asyncio.to_thread(_refuse_faults, policy)
            before = self._policies.of(project)
            await self._policies.put(policy, operation.done(changed_rules(before.rules, rules)))
            return policy


def _refuse_faults(policy: JobPolicy) -> None:
    """Raise InvalidJobError with what is wrong with a policy; in a thread, as the first one has much imported."""
    load_policy_rules()
    refuse_policy_faults(policy)
