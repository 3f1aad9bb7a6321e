"""Policies against jobs: how they are read, which of their keys a job file has, and what a job breaks of them.

Importing this package is cheap; the models of job files are imported when the first policy is looked at.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muster.domain.errors import InvalidJobError
from muster.domain.fault import Path
from muster.domain.fleet.policies.policy import JobPolicy, PolicyRule
from muster.domain.jobs.job import JobSpec

__all__ = ["load_policy_rules", "policy_document", "policy_rules", "refuse_broken_policies", "refuse_policy_faults"]


def load_policy_rules() -> None:
    """Import what looks at policies and at jobs, before anybody waits for that; it may take a third of a second."""
    from muster.jobfile.policies import issues, reading  # noqa: F401, PLC0415 - models only where there are policies


def policy_rules(document: Any) -> Mapping[str, PolicyRule]:  # noqa: ANN401 - what a file says is checked here
    """The rules that a document describes; raises InvalidJobError with the first thing that is wrong."""
    from muster.jobfile.policies.reading import rules_of  # noqa: PLC0415 - models only when a policy is read

    return rules_of(document)


def policy_document(rules: Mapping[str, PolicyRule]) -> dict[str, Any]:
    """The document of these rules, which reads to the same rules."""
    from muster.jobfile.policies.reading import written  # noqa: PLC0415 - as above

    return written(rules)


def refuse_policy_faults(policy: JobPolicy) -> JobPolicy:
    """The policy, if nothing is wrong with it by itself; raises InvalidJobError with all that is."""
    from muster.jobfile.policies.reading import policy_faults  # noqa: PLC0415 - as above

    if found := list(policy_faults(policy)):
        raise InvalidJobError("\n".join(found))
    return policy


def refuse_broken_policies(
    spec: JobSpec,
    policies: Sequence[JobPolicy],
    before: JobSpec | None = None,
    *,
    said: Callable[[Path], bool] | None = None,
) -> None:
    """Raise InvalidJobError with what a job breaks of policies, beside what it broke as it was `before`.

    `said` is whether a job file itself says something, where presets may have said it; None: it has said everything.
    """
    if not any(policy.rules for policy in policies):
        return
    from muster.jobfile.policies.issues import refuse_issues  # noqa: PLC0415 - most fleets have no policies

    refuse_issues(spec, policies, before, said)
