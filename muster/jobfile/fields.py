"""The kinds of single values that a job file has: what is accepted, and the sentence for what is not.

Each is a type for the models: a check that takes the written value, and the JSON Schema that says the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, PlainValidator, WithJsonSchema

from muster.domain.data.output_terms import LiveOutputs, StoredAfter
from muster.domain.jobs.disconnect import LONGEST_LOST_AFTER, SHORTEST_LOST_AFTER, OnDisconnect
from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.frameworks.framework import MOST_PROCESSES, PER_GPU, FrameworkName, LaunchPlace, Rendezvous
from muster.domain.jobs.interactive import NEVER_IDLE, SHORTEST_IDLE
from muster.domain.jobs.job import CAPABILITIES, NODE_LABEL, Network, Packing, PullPolicy
from muster.domain.jobs.job_class import JobClass
from muster.domain.jobs.lifecycle import SuccessRule, success_named
from muster.domain.jobs.placing.affinity import LabelOperator
from muster.domain.jobs.placing.mig import MIG_PROFILE
from muster.domain.jobs.placing.portion import LEAST_GPU_MEMORY
from muster.domain.jobs.placing.toleration import TaintEffect, TolerationOperator
from muster.domain.jobs.restart import SHORTEST_BACKOFF, ExitCodes, parse_exit_codes
from muster.domain.jobs.rules import job_values, portion_rules
from muster.domain.jobs.rules.data import input_rules, volume_rules
from muster.domain.jobs.rules.job_values import Wrong
from muster.domain.jobs.stopping.preemption import LONGEST_PREEMPT_GRACE, PreemptSignal
from muster.domain.quantity import MAX_CPUS, MAX_DURATION, MAX_MEMORY, MILLIS_PER_CPU
from muster.domain.quoting import nearest, quote
from muster.jobfile.document import Scalar, atom, kind, scalar
from muster.jobfile.errors import FieldError
from muster.jobfile.quantity import (
    MOMENT_PATTERN,
    NO_LIMIT,
    Written,
    parse_cpus,
    parse_duration,
    parse_gpu_portion,
    parse_memory,
    parse_moment,
)

Value = TypeVar("Value")
_Choice = TypeVar("_Choice", bound=StrEnum)
_SWITCHES = {"yes": "true", "on": "true", "no": "false", "off": "false"}


def given(value: object) -> Scalar:
    """The single value, which must be there; raises FieldError for a key that is followed by nothing."""
    written = scalar(value)
    if written.value is None:
        raise FieldError('has no value; give one, or remove the key (an empty text is "")')
    return written


def ruled(value: Value, wrong: Wrong | None) -> Value:
    """The value, if the rule book finds nothing wrong with it; raises FieldError."""
    if wrong is not None:
        raise FieldError(wrong.message, suggestion=wrong.suggestion)
    return value


def verbatim(value: object) -> str:
    """Text as it was written, whatever YAML thinks it means; raises FieldError for what is not a single value."""
    text = given(value).text
    return ruled(text, job_values.plain_text(text))


def text_by(rule: Callable[[str], Wrong | None], value: object) -> str:
    """Text that a rule of the rule book allows; raises FieldError."""
    text = verbatim(value)
    return ruled(text, rule(text))


def _whole(value: object) -> int:
    written = given(value)
    if isinstance(written.value, int) and not isinstance(written.value, bool):
        return written.value
    if isinstance(written.value, str) and isinstance(atom(written.text), int):
        raise FieldError(f"must be a whole number without quotes, not {quote(written.text)}")
    raise FieldError(f"must be a whole number, not {kind(written)}")


def _flag(value: object) -> bool:
    written = given(value)
    if isinstance(written.value, bool):
        return written.value
    raise FieldError(f"must be true or false, not {kind(written)}", suggestion=_SWITCHES.get(written.text.lower()))


def _one_of(choices: type[_Choice], value: object) -> _Choice:
    text = given(value).text
    if text in set(choices):
        return choices(text)
    known = " or ".join(filter(None, [", ".join(list(choices)[:-1]), list(choices)[-1]]))
    raise FieldError(f"must be {known}, not {quote(text)}", suggestion=nearest(text.lower(), choices))


def _processes(value: object) -> int | None:
    """A number of processes; None for `gpu`, as many as an execution has GPUs."""
    if value is None or (isinstance(value, Scalar) and value.text == PER_GPU):
        return None
    try:
        number = _whole(value)
    except FieldError as error:
        raise FieldError(f"must be {PER_GPU} or a whole number, not {quote(given(value).text)}") from error
    if not 1 <= number <= MOST_PROCESSES:
        raise FieldError(f"must be {PER_GPU} or a whole number from 1 to {MOST_PROCESSES}, not {number}")
    return number


def _quantity(value: object) -> Written:
    """What the parsers of quantities take: the text as written, so that 0.1 is exact; true stays true."""
    written = given(value)
    return written.value if isinstance(written.value, bool) else written.text


def _memory(least: int, value: object) -> int:
    size = parse_memory(_quantity(value))
    wrong = job_values.memory(size, least)
    if wrong is not None and size < least and size * 2**30 <= MAX_MEMORY and scalar(value).text.isdigit():
        wrong = replace(wrong, suggestion=f"{size}Gi")
    return ruled(size, wrong)


def _cpus(value: object) -> int:
    return parse_cpus(_quantity(value))


def _gpu_portion(value: object) -> int:
    return ruled(found := parse_gpu_portion(_quantity(value)), portion_rules.gpu_portion(found))


def _cpu_limit(value: object) -> int | None:
    """Thousandths of a CPU; None where the key is not there, or says that there is no limit."""
    if value is None or (isinstance(value, Scalar) and value.text == NO_LIMIT):
        return None
    millis = _cpus(value)
    return ruled(millis, job_values.cpu_limit(millis))


def _memory_limit(value: object) -> int | None:
    """A size; None where the key is not there, and 0 where it says that there is no limit."""
    if value is None:
        return None
    if isinstance(value, Scalar) and value.text == NO_LIMIT:
        return 0
    return _memory(job_values.MIN_MEMORY, value)


def _duration(value: object) -> timedelta:
    return parse_duration(_quantity(value))


def _span_by(rule: Callable[[timedelta], Wrong | None], value: object) -> timedelta:
    span = _duration(value)
    return ruled(span, rule(span))


def _idle(value: object) -> timedelta | None:
    if value is None:
        return None  # the key is not there
    if isinstance(value, Scalar) and value.text == NO_LIMIT:
        return NEVER_IDLE
    return _span_by(job_values.idle, value)


def _exit_codes(value: object) -> ExitCodes:
    try:
        return parse_exit_codes(scalar(value).text)
    except ValueError as error:
        raise FieldError(str(error)) from None


def check_limit(value: object) -> int:
    """A value of setrlimit(2), -1 for unlimited; raises FieldError for what is none."""
    written = given(value)
    if written.text in {"unlimited", "-1"}:
        return job_values.UNLIMITED
    if isinstance(written.value, int) and not isinstance(written.value, bool) and written.value >= 0:
        return ruled(written.value, job_values.ulimit(written.value))
    raise FieldError(f"must be a whole number from 0 on, or unlimited, not {kind(written)}")


def _schema(**schema: object) -> WithJsonSchema:
    return WithJsonSchema(schema)


def _by(rule: Callable[[str], Wrong | None]) -> BeforeValidator:
    return BeforeValidator(partial(text_by, rule))


def names(choices: type[_Choice]) -> tuple[BeforeValidator, WithJsonSchema]:
    """Check and JSON Schema of one of several words."""
    return BeforeValidator(partial(_one_of, choices)), _schema(enum=list(map(str, choices)))


def within(least: int, most: int) -> tuple[BeforeValidator, WithJsonSchema]:
    """Check and JSON Schema of a whole number within its limits, both included."""

    def check(value: object) -> int:
        number = _whole(value)
        return ruled(number, job_values.number(number, least, most))

    return BeforeValidator(check), _schema(type="integer", minimum=least, maximum=most)


def _pattern(pattern: str) -> WithJsonSchema:
    return _schema(type="string", pattern=f"^{pattern}$")


SCALARS = ["string", "number", "boolean"]
PLAIN = r"[^\u0000]*"
"""The pattern of text that a program can be given."""
SEEN = r"[^\u0000-\u001f\u007f-\u009f\u00ad\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
"""The pattern of a character that can be seen, but for a few that only other alphabets have."""
_STAYS = r"(?!(.*/)?\.\.(/|$))"
"""A path that does not climb."""
_NOT_OURS = r"(?!/+muster(/|$))"
"""A path that Muster does not fill itself."""
_SOME = r"(?=.*[1-9])"
"""A quantity that is more than nothing."""


def _size_forms(least: int) -> list[dict[str, object]]:
    number: dict[str, object] = {"type": "integer", "minimum": least, "maximum": MAX_MEMORY}
    digits = len(str(least))
    units = rf"^{_SOME}([0-9.]+ ?([kMGTP]|[KMGTP]i)|[0-9]{{{digits},}}(\.[0-9]*)?)$"
    return [number, {"type": "string", "pattern": units}]


def _size(least: int) -> WithJsonSchema:
    return _schema(anyOf=_size_forms(least))


Verbatim = Annotated[
    str, BeforeValidator(verbatim), _schema(type=SCALARS, pattern=f"^{PLAIN}$", maxLength=job_values.MAX_WORD)
]
FILLED: Mapping[str, Any] = {"type": SCALARS, "pattern": rf"^(?=.*\S){SEEN}+$"}
"""What the JSON Schema says of a name that says something."""
Filled = Annotated[str, _by(job_values.filled), _schema(**FILLED)]
Setup = Annotated[
    str,
    BeforeValidator(partial(text_by, job_values.setup)),
    _schema(type=SCALARS, pattern=rf"^(|(?=[\s\S]*\S){PLAIN})$", maxLength=job_values.MAX_WORD),
]
PlainText = Annotated[str, BeforeValidator(lambda value: given(value).text), _schema(type="string")]
Flag = Annotated[bool, BeforeValidator(_flag)]
Memory = Annotated[int, BeforeValidator(partial(_memory, job_values.MIN_MEMORY)), _size(job_values.MIN_MEMORY)]
SharedMemory = Annotated[int, BeforeValidator(partial(_memory, job_values.MIN_SHM)), _size(job_values.MIN_SHM)]
_CPU_TEXT = r"(?![0-9]{7,}(\.|$))[0-9.]+m?$"
Cpus = Annotated[
    int,
    BeforeValidator(_cpus),
    _schema(
        anyOf=[
            {"type": "number", "exclusiveMinimum": 0, "maximum": MAX_CPUS},
            {"type": "string", "pattern": rf"^{_SOME}{_CPU_TEXT}"},
        ]
    ),
]
_NO_LIMIT = {"const": NO_LIMIT}
CpuLimit = Annotated[
    int | None,
    BeforeValidator(_cpu_limit),
    _schema(
        anyOf=[
            _NO_LIMIT,
            {"type": "number", "minimum": job_values.MIN_CPU_LIMIT / MILLIS_PER_CPU, "maximum": MAX_CPUS},
            {"type": "string", "pattern": rf"^{_SOME}(?![0-9](\.[0-9]*)?m$)(?!0*\.00[0-9]*$){_CPU_TEXT}"},
        ]
    ),
]
MemoryLimit = Annotated[
    int | None,
    BeforeValidator(_memory_limit),
    _schema(anyOf=[_NO_LIMIT, *_size_forms(job_values.MIN_MEMORY)]),
]
_YEARS = r"(?!(36[6-9]|3[7-9][0-9]|[4-9][0-9]{2}|[0-9]{4,})d)"
"""A duration whose days are not more than a year."""


def _span_text(limits: str = _YEARS) -> dict[str, str]:
    return {"type": "string", "pattern": f"^{_SOME}{limits}([0-9.]+(d|h|m|s|ms)?)+$"}


_SPAN = [{"type": "number", "exclusiveMinimum": 0, "maximum": MAX_DURATION.total_seconds()}, _span_text()]
Span = Annotated[timedelta, BeforeValidator(_duration), _schema(anyOf=_SPAN)]
Moment = Annotated[
    datetime | None,
    BeforeValidator(lambda value: None if value is None else parse_moment(_quantity(value))),
    _pattern(MOMENT_PATTERN),
]
_LOST_AFTER_SECONDS = {
    "type": "number",
    "minimum": SHORTEST_LOST_AFTER.total_seconds(),
    "maximum": LONGEST_LOST_AFTER.total_seconds(),
}
_LOST_AFTER_LIMITS = r"(?!([0-9]|[1-5][0-9])(\.[0-9]*)?s?$)(?![0-9.]+ms$)(?!([89]|[1-9][0-9]+)d)"
LostAfter = Annotated[
    timedelta,
    BeforeValidator(partial(_span_by, job_values.lost_after)),
    _schema(anyOf=[_LOST_AFTER_SECONDS, _span_text(_LOST_AFTER_LIMITS)]),
]
_PREEMPT_SECONDS = {"type": "number", "exclusiveMinimum": 0, "maximum": LONGEST_PREEMPT_GRACE.total_seconds()}
Preempt = Annotated[
    timedelta,
    BeforeValidator(partial(_span_by, job_values.preempt)),
    _schema(anyOf=[_PREEMPT_SECONDS, _span_text(r"(?!.*d)(?!([2-9]|[1-9][0-9]+)(\.[0-9]*)?h)(?![0-9]{5,}(\.|s|$))")]),
]
PreemptSignalName = Annotated[PreemptSignal, *names(PreemptSignal)]
_BACKOFF_SECONDS = {
    "type": "number",
    "minimum": SHORTEST_BACKOFF.total_seconds(),
    "maximum": MAX_DURATION.total_seconds(),
}
_BACKOFF_LIMITS = r"(?![0-9]{1,3}(\.[0-9]*)?ms$)(?!0*\.[0-9]+s?$)" + _YEARS
Backoff = Annotated[
    timedelta,
    BeforeValidator(partial(_span_by, job_values.backoff)),
    _schema(anyOf=[_BACKOFF_SECONDS, _span_text(_BACKOFF_LIMITS)]),
]
_IDLE_SECONDS = {
    "type": "number",
    "minimum": SHORTEST_IDLE.total_seconds(),
    "maximum": MAX_DURATION.total_seconds(),
}
_IDLE_LIMITS = r"(?![0-9](\.[0-9]*)?s?$)(?![0-9]{1,4}(\.[0-9]*)?ms$)" + _YEARS
Idle = Annotated[
    timedelta | None,
    BeforeValidator(_idle),
    _schema(anyOf=[{"const": NO_LIMIT}, _IDLE_SECONDS, _span_text(_IDLE_LIMITS)]),
]
ExitCodeRanges = Annotated[
    ExitCodes,
    BeforeValidator(_exit_codes),
    _schema(type=["string", "integer"], pattern=r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$"),
]
Label = Annotated[str, _by(job_values.label), _pattern(job_values.LABEL)]
PortName = Annotated[str, _by(job_values.port_name), _pattern(job_values.PORT_NAME)]
_RESERVED = "|".join(sorted(job_values.RESERVED_ENV))
OWN_ENV_NAME = f"(?!({_RESERVED})$)(?!{job_values.RESERVED_PREFIX}){job_values.ENV_NAME}"
"""The pattern of names of variables that are not Muster's own."""
EnvName = Annotated[str, _by(job_values.env_name), _pattern(OWN_ENV_NAME)]
NodeLabelValue = Annotated[str, _by(job_values.name_like), _schema(type=SCALARS, pattern=f"^{SEEN}*$")]
NodeLabel = Annotated[str, _by(job_values.node_label), _pattern(NODE_LABEL)]
JobLabel = Annotated[
    str, _by(job_values.job_label), _schema(type=SCALARS, pattern=f"^{SEEN}{{0,{job_values.MAX_LABEL_VALUE}}}$")
]
_REPOSITORY = r"(([^/]*[.:][^/]*|localhost)/)?[a-z0-9._/-]+([:@].*)?"
ImageName = Annotated[str, _by(job_values.image), _pattern(rf"(?=[A-Za-z0-9\[][\x21-\x7e]{{0,511}}$){_REPOSITORY}")]
UserName = Annotated[str, _by(job_values.user), _schema(type=["string", "integer"], pattern=f"^{job_values.USER}$")]
Absolute = Annotated[str, _by(job_values.absolute), _pattern(f"{_STAYS}/{SEEN}*")]
MountTarget = Annotated[str, _by(job_values.absolute), _pattern(rf"{_STAYS}(?!/+$){_NOT_OURS}/{SEEN}*")]
_LEVELS = rf"(?!(/*[^/]+/+){{{job_values.MOST_LEVELS}}})"
FilePath = Annotated[str, _by(job_values.file_path), _pattern(rf"{_STAYS}(?!.*/$){_NOT_OURS}{_LEVELS}(?=.*\S){SEEN}+")]
VolumePath = Annotated[
    str, _by(volume_rules.volume_path), _pattern(rf"{_STAYS}(?!/+$){_NOT_OURS}(?!/+(proc|sys|dev)(/|$))/{SEEN}*")
]
VolumeSize = Annotated[int, BeforeValidator(partial(_memory, volume_rules.MIN_VOLUME)), _size(volume_rules.MIN_VOLUME)]
StoredAfterName = Annotated[StoredAfter, *names(StoredAfter)]
LiveOutputsName = Annotated[LiveOutputs, *names(LiveOutputs)]
InputSha256 = Annotated[str, _by(input_rules.input_sha256), _pattern(input_rules.INPUT_SHA256)]
Limit = Annotated[
    int,
    BeforeValidator(check_limit),
    _schema(anyOf=[{"type": "integer", "minimum": -1}, {"const": "unlimited"}]),
]
UlimitName = Annotated[str, _by(job_values.ulimit_name), _schema(enum=list(job_values.ULIMITS))]
GpuPortion = Annotated[int, BeforeValidator(_gpu_portion), _schema(type="number", minimum=0.01, maximum=1)]
GpuMemory = Annotated[int, BeforeValidator(partial(_memory, LEAST_GPU_MEMORY)), _size(LEAST_GPU_MEMORY)]
MigProfile = Annotated[str, _by(job_values.mig), _pattern(MIG_PROFILE)]
Capability = Annotated[str, _by(job_values.capability), _schema(enum=sorted(CAPABILITIES))]
NetworkName = Annotated[Network, *names(Network)]
PullName = Annotated[PullPolicy, *names(PullPolicy)]
SuccessName = Annotated[
    SuccessRule | str,
    BeforeValidator(lambda value: success_named(text_by(job_values.label, value))),
    _pattern(job_values.LABEL),
]
FrameworkWord = Annotated[FrameworkName, *names(FrameworkName)]
DialectWord = Annotated[Dialect, *names(Dialect)]
RendezvousName = Annotated[Rendezvous, *names(Rendezvous)]
LaunchName = Annotated[LaunchPlace, *names(LaunchPlace)]
Processes = Annotated[
    int | None,
    PlainValidator(_processes),
    WithJsonSchema({"anyOf": [{"const": "gpu"}, {"type": "integer", "minimum": 1, "maximum": MOST_PROCESSES}]}),
]
OnDisconnectName = Annotated[OnDisconnect, *names(OnDisconnect)]
JobClassName = Annotated[JobClass, *names(JobClass)]
TaintEffectName = Annotated[TaintEffect, *names(TaintEffect)]
TolerationOperatorName = Annotated[TolerationOperator, *names(TolerationOperator)]
PackingName = Annotated[Packing, *names(Packing)]
LabelOperatorName = Annotated[LabelOperator, *names(LabelOperator)]
