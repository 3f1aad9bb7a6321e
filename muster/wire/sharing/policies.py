"""Policies of the fleet and of projects."""

from collections.abc import Mapping

from muster.domain.fleet.policies.policy import JobPolicy, PolicyRule
from muster.rpc.v1 import projects_pb2 as pb
from muster.wire import checks


def job_policy_to_wire(policy: JobPolicy) -> pb.JobPolicy:
    """The policy as a message."""
    return pb.JobPolicy(
        project=policy.project,
        rules=policy_rules_to_wire(policy.rules),
        updated_at=checks.timestamp(policy.updated_at),
        updated_by=policy.updated_by,
    )


def job_policy_from_wire(message: pb.JobPolicy) -> JobPolicy:
    """The policy of a message; raises WireError."""
    return JobPolicy(
        project=checks.text(message.project, "JobPolicy.project"),
        rules=policy_rules_from_wire(message.rules),
        updated_at=checks.optional_moment(message, "updated_at"),
        updated_by=checks.text(message.updated_by, "JobPolicy.updated_by"),
    )


def policy_rules_to_wire(rules: Mapping[str, PolicyRule]) -> dict[str, pb.PolicyRule]:
    """Rules by key as messages."""
    return {key: _rule_to_wire(rule) for key, rule in rules.items()}


def policy_rules_from_wire(messages: Mapping[str, pb.PolicyRule]) -> dict[str, PolicyRule]:
    """Rules by key; raises WireError. What is wrong with them as rules is found elsewhere."""
    checks.few(messages, "rules")
    return {checks.text(key, "rules"): _rule_from_wire(message) for key, message in messages.items()}


def _rule_to_wire(rule: PolicyRule) -> pb.PolicyRule:
    return pb.PolicyRule(
        required=rule.required,
        min=rule.min,
        max=rule.max,
        step=rule.step,
        options=rule.options,
        pattern=rule.pattern,
        locked=rule.locked,
        no_edit=not rule.edit,
        no_add=not rule.add,
    )


def _rule_from_wire(message: pb.PolicyRule) -> PolicyRule:
    checks.few(message.options, "PolicyRule.options")
    return PolicyRule(
        required=message.required,
        min=checks.text(message.min, "PolicyRule.min"),
        max=checks.text(message.max, "PolicyRule.max"),
        step=checks.text(message.step, "PolicyRule.step"),
        options=tuple(checks.text(each, "PolicyRule.options") for each in message.options),
        pattern=checks.text(message.pattern, "PolicyRule.pattern"),
        locked=message.locked,
        edit=not message.no_edit,
        add=not message.no_add,
    )
