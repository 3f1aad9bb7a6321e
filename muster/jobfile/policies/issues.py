"""What a job breaks of policies; all of it at once, each with the rule, whose policy it is, and what is allowed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any

from muster.domain.errors import InvalidJobError
from muster.domain.fault import Path
from muster.domain.fleet.policies.policy import JobPolicy, PolicyIssue, PolicyRule
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.rules.job_rules import MOST_TOLD
from muster.domain.quoting import quote
from muster.jobfile.dump import dump
from muster.jobfile.policies.amounts import amount
from muster.jobfile.policies.keys import ROLE_POLICY_KEYS, WORKERS
from muster.jobfile.policies.reading import value_text

_OF_FILES = frozenset({"edit", "add"})
"""Rules about what job files say; presets may say it."""
_FEW = 8
"""Most allowed values that a sentence lists."""


class _Absent:
    """The word for a value that is not there."""


_ABSENT = _Absent()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """A value that a rule is about."""

    path: Path
    value: Any
    plain: Any
    """What a job has there that says nothing."""

    @property
    def said(self) -> bool:
        """Whether the job says something of it."""
        return self.value is not _ABSENT and self.value != self.plain


def policy_issues(spec: JobSpec, policies: Iterable[JobPolicy]) -> tuple[PolicyIssue, ...]:
    """All that a job breaks of these policies; empty: it may be taken."""
    found: list[PolicyIssue] = []
    job: _JobValues | None = None
    for policy in policies:
        if policy.rules and job is None:
            job = _JobValues(spec)
        for key, rule in policy.rules.items():
            assert job is not None
            for each in job.at(key):
                found += (
                    PolicyIssue(path=each.path, rule=word, message=message, source=policy.source)
                    for word, message in _broken(key, rule, each)
                )
    return tuple(found)


def refuse_issues(
    spec: JobSpec,
    policies: Sequence[JobPolicy],
    before: JobSpec | None = None,
    said: Callable[[Path], bool] | None = None,
) -> None:
    """Raise InvalidJobError with what a job breaks of policies, beside what it broke as it was `before`.

    `said` is whether a job file itself says something, where presets may have said it; None: it has said everything.
    """
    kept = frozenset(policy_issues(before, policies)) if before is not None else frozenset()
    found = [
        issue.fault
        for issue in policy_issues(spec, policies)
        if issue not in kept and (said is None or issue.rule not in _OF_FILES or said(issue.path))
    ]
    if found:
        more = f"\nand {len(found) - MOST_TOLD} more" if len(found) > MOST_TOLD else ""
        raise InvalidJobError.of("\n".join(map(str, found[:MOST_TOLD])) + more, found)


class _JobValues:
    """The values of a job, as its file would spell them out, and those of one that says nothing."""

    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec
        self._job = dump(spec)
        self._roles = [self._job]
        if [role.name for role in spec.roles] != [Role().name]:
            self._roles = [dump(replace(spec, roles=(replace(role, name=Role().name),))) for role in spec.roles]
        self._plain = _plain(None)

    def at(self, key: str) -> Iterator[_Found]:
        """Each value that a key of a policy is about."""
        first, _, rest = key.partition(".")
        if key == WORKERS:
            one = len(self._roles) == 1
            path: Path = ("roles", 0, "count") if one else ("roles",)
            yield _Found(path=path, value=self._spec.size, plain=1)
        elif first == "roles":
            name, _, inner = rest.partition(".")
            for number, role in enumerate(self._spec.roles):
                if role.name == name:
                    yield self._in_role(number, inner)
        elif first in ROLE_POLICY_KEYS:
            for number in range(len(self._roles)):
                yield self._in_role(number, key)
        else:
            yield _Found(path=tuple(key.split(".")), value=_value(self._job, key), plain=_value(self._plain, key))

    def _in_role(self, number: int, key: str) -> _Found:
        if key == "count":
            return _Found(path=("roles", number, key), value=self._spec.roles[number].count, plain=1)
        plain = self._plain
        if key == "pull":  # which only containers have
            plain = _plain(self._spec.roles[number].image)
        path: Path = ("roles", number, *key.split("."))
        return _Found(path=path, value=_value(self._roles[number], key), plain=_value(plain, key))


@lru_cache(maxsize=100)
def _plain(image: str | None) -> Mapping[str, Any]:
    """The values of a job that says nothing, of a container where there is an image."""
    return dump(JobSpec(name="none", roles=(Role(image=image),)))


def _value(document: object, key: str) -> Any:  # noqa: ANN401 - a value of any key
    """The value under a key; names in maps may have dots themselves."""
    if not key:
        return document
    if isinstance(document, Mapping):
        parts = key.split(".")
        for length in range(len(parts), 0, -1):
            name = ".".join(parts[:length])
            if name in document:
                return _value(document[name], ".".join(parts[length:]))
    return _ABSENT


def _broken(key: str, rule: PolicyRule, found: _Found) -> Iterator[tuple[str, str]]:
    """Each part of a rule that a value breaks, with what is wrong and what is allowed."""
    if rule.required and not found.said:
        yield "required", "must be said in the job file"
    if found.value is _ABSENT:
        return
    if rule.locked and found.said:
        yield "locked", f"is locked; {_left_alone(found)}"
    if not rule.edit and found.said:
        yield "edit", f"is not for job files; {_left_alone(found)}"
    if not rule.add and isinstance(found.value, (Mapping, list)) and found.said:
        yield "add", "may have no entries in a job file; leave it out"
    if rule.bounded:
        yield from _out_of_bounds(key, rule, found.value)
    if (rule.options or rule.pattern) and (wrong := _not_allowed(rule, found.value)) is not None:
        word = "options" if rule.options else "pattern"
        yield word, f"{quote(wrong)} is not allowed; {_choices(rule)}"


def _left_alone(found: _Found) -> str:
    return "leave it out" if found.plain is _ABSENT else f"leave it at {quote(value_text(found.plain))}"


def _out_of_bounds(key: str, rule: PolicyRule, value: object) -> Iterator[tuple[str, str]]:
    path = key.removeprefix("roles.").partition(".")[2] if key.startswith("roles.") else key
    number, shown = amount(path, value), value_text(value) if isinstance(value, (str, int, float)) else "this value"
    least, most, step = (amount(path, text) if text else None for text in (rule.min, rule.max, rule.step))
    allowed = _allowed(rule, least, most, step)
    if number is None:
        yield next(word for word in ("max", "min", "step") if getattr(rule, word)), f"{shown} is no amount; {allowed}"
        return
    if least is not None and number < least:
        yield "min", f"{shown} is not allowed; {allowed}"
    if most is not None and number > most:
        yield "max", f"{shown} is not allowed; {allowed}"
    if step is not None and _beside(number - (least or 0), step):
        yield "step", f"{shown} is not allowed; {allowed}"


def _beside(distance: float, step: float) -> bool:
    """Whether a distance is no whole number of steps, but for the last digits."""
    steps = distance / step
    return abs(steps - round(steps)) > 1e-6  # noqa: PLR2004 - far below the finest amount


def _allowed(rule: PolicyRule, least: float | None, most: float | None, step: float | None) -> str:
    """Which amounts are allowed: all of them where they are few whole numbers, else the bounds."""
    plain = rule.max.isdecimal() and (not rule.min or rule.min.isdecimal()) and (not rule.step or rule.step.isdecimal())
    if plain and most is not None and least is not None:
        numbers = [str(each) for each in range(int(least), int(most) + 1, int(step or 1))][: _FEW + 1]
        if 0 < len(numbers) <= _FEW:
            return f"{_listed(numbers)} {'is' if len(numbers) == 1 else 'are'}"
    bounds = [f"at least {rule.min}"] if rule.min else []
    bounds += [f"at most {rule.max}"] if rule.max else []
    bounds += [f"in steps of {rule.step}"] if rule.step else []
    return f"{' and '.join(bounds)} is"


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _not_allowed(rule: PolicyRule, value: object) -> str | None:
    """The first text of a value that is neither an option nor fits the pattern; None: all do."""
    values: Iterable[object] = (value,)
    if isinstance(value, list):
        values = value
    elif isinstance(value, Mapping):
        values = value.values()
    return next((_text(each) for each in values if not _fits(rule, _text(each))), None)


def _text(value: object) -> str:
    return value_text(value)


def _fits(rule: PolicyRule, text: str) -> bool:
    return text in rule.options or (bool(rule.pattern) and fnmatchcase(text, rule.pattern))


def _choices(rule: PolicyRule) -> str:
    told = [quote(each) for each in rule.options[:_FEW]]
    told += [f"{len(rule.options) - _FEW} others"] if len(rule.options) > _FEW else []
    told += [f"what fits {quote(rule.pattern)}"] if rule.pattern else []
    return f"{_listed(told)} {'is' if len(told) == 1 else 'are'}"
