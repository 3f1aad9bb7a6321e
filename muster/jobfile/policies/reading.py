"""Policies as files and HTTP have them, and what is wrong with one by itself."""

from collections.abc import Iterator, Mapping
from typing import Any

from muster.domain.errors import InvalidJobError
from muster.domain.fleet.policies.policy import (
    LONGEST_POLICY_TEXT,
    MOST_POLICY_OPTIONS,
    MOST_POLICY_RULES,
    JobPolicy,
    PolicyRule,
)
from muster.domain.quoting import did_you_mean, quote
from muster.jobfile.policies.amounts import amount
from muster.jobfile.policies.keys import unknown_key

_SWITCHES = frozenset({"required", "locked", "edit", "add"})
_TEXTS = frozenset({"min", "max", "step", "pattern"})
_ANSWERS = {"true": True, "false": False}
_WORDS = frozenset({*_SWITCHES, *_TEXTS, "options"})


def rules_of(document: Any) -> Mapping[str, PolicyRule]:  # noqa: ANN401 - what a file says is looked at here
    """The rules of a document with `rules`, a map by key; raises InvalidJobError with the first thing that is wrong."""
    if not isinstance(document, Mapping) or set(document) != {"rules"} or not isinstance(document["rules"], Mapping):
        raise InvalidJobError("a policy is a map with the one key `rules`, which is a map by key of the job file")
    return {str(path): _rule(str(path), said) for path, said in document["rules"].items()}


def written(rules: Mapping[str, PolicyRule]) -> dict[str, Any]:
    """The rules as a document that reads to the same rules; what a rule does not say is left out."""
    return {"rules": {path: _said(rule) for path, rule in sorted(rules.items())}}


def policy_faults(policy: JobPolicy) -> Iterator[str]:
    """What is wrong with a policy by itself, a sentence for each key."""
    if len(policy.rules) > MOST_POLICY_RULES:
        yield f"a policy has rules for {MOST_POLICY_RULES} keys at most, not for {len(policy.rules)}"
        return
    for path, rule in policy.rules.items():
        if wrong := _wrong(path, rule):
            yield f"{quote(path)} {wrong}"


def _rule(path: str, said: Any) -> PolicyRule:  # noqa: ANN401 - what a file says is looked at here
    if not isinstance(said, Mapping):
        raise InvalidJobError(f"the rule for {quote(path)} must be a map, like {{max: 8}}")
    values: dict[str, Any] = {}
    for word, value in said.items():
        if word not in _WORDS:
            raise InvalidJobError(f"{quote(str(word))} under {quote(path)} is no rule{did_you_mean(str(word), _WORDS)}")
        values[word] = _value(path, word, value)
    return PolicyRule(**values)


def _value(path: str, word: str, value: object) -> object:
    if word in _SWITCHES:
        if str(value).lower() not in _ANSWERS:
            raise InvalidJobError(f"{word} under {quote(path)} must be true or false")
        return _ANSWERS[str(value).lower()]
    if word in _TEXTS:
        return _text(path, word, value)
    if not isinstance(value, (list, tuple)):
        raise InvalidJobError(f"options under {quote(path)} must be a list of values")
    return tuple(_text(path, word, each) for each in value)


def _text(path: str, word: str, value: object) -> str:
    if not isinstance(value, (str, int, float)):
        raise InvalidJobError(f"{word} under {quote(path)} must be a single value, not a list or a map")
    return value_text(value)


def value_text(value: object) -> str:
    """A single value as a job file writes it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _said(rule: PolicyRule) -> dict[str, Any]:
    said: dict[str, Any] = {}
    for word in ("required", "min", "max", "step", "options", "pattern", "locked", "edit", "add"):
        value = getattr(rule, word)
        if value != getattr(_SAYS_NOTHING, word):
            said[word] = list(value) if word == "options" else value
    return said


_SAYS_NOTHING = PolicyRule()


def _wrong(path: str, rule: PolicyRule) -> str:
    texts = (path, rule.min, rule.max, rule.step, rule.pattern, *rule.options)
    if any(len(text) > LONGEST_POLICY_TEXT for text in texts):
        return f"has a text of more than {LONGEST_POLICY_TEXT} characters"
    if len(rule.options) > MOST_POLICY_OPTIONS:
        return f"has {len(rule.options)} options; {MOST_POLICY_OPTIONS} are the most"
    if unknown := unknown_key(path):
        return unknown
    if rule == _SAYS_NOTHING:
        return "has no rule; take it out"
    return _bounds(path, rule)


def _bounds(path: str, rule: PolicyRule) -> str:
    for word in ("min", "max", "step"):
        text = getattr(rule, word)
        if text and amount(path, text) is None:
            return f"has the {word} {quote(text)}, which is no amount for this key"
    least, most, step = (amount(path, text) if text else None for text in (rule.min, rule.max, rule.step))
    if least is not None and most is not None and least > most:
        return f"has the min {quote(rule.min)} above the max {quote(rule.max)}, so that nothing would be allowed"
    if step is not None and step <= 0:
        return "has a step that is not above zero"
    return ""
