"""The kinds of single values that a job file has: what is accepted, and the sentence for what is not.

Each is a type for the models: a check that takes the written value, and the JSON Schema that says the same.
"""

import difflib
import re
from collections.abc import Iterable
from datetime import timedelta
from enum import StrEnum
from functools import partial
from pathlib import PurePosixPath
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, WithJsonSchema

from muster.domain.disconnect import LONGEST_LOST_AFTER, SHORTEST_LOST_AFTER, OnDisconnect
from muster.domain.job import CAPABILITIES, MOST_LEVELS, NODE_LABEL, Network, Packing, PullPolicy
from muster.domain.lifecycle import SuccessRule
from muster.domain.restart import SHORTEST_BACKOFF, ExitCodes, parse_exit_codes
from muster.spec.document import Scalar, atom, kind, scalar
from muster.spec.errors import FieldError, quote
from muster.spec.plain import LABEL
from muster.spec.quantity import (
    MAX_MEMORY,
    Written,
    format_duration,
    format_memory,
    parse_cpus,
    parse_duration,
    parse_memory,
)

PORT_NAME = r"[a-z][a-z0-9-]{0,14}"
ENV_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
USER = r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?"

MIN_MEMORY = 6 * 2**20
"""Docker refuses a limit below 6 MiB."""
MIN_SHM = 2**20

OWN_DIRECTORY = "/muster"
"""Where every container finds what Muster gives it."""

ULIMITS = (
    *("core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice"),
    *("nofile", "nproc", "rss", "rtprio", "rttime", "sigpending", "stack"),
)
MAX_ULIMIT = 2**63 - 1

RESERVED_ENV = frozenset(
    {
        *("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "NODE_RANK", "NNODES"),
        *("LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"),
        *("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    },
)
"""What an execution learns from Muster about its place and its GPUs; and every name with RESERVED_PREFIX."""
RESERVED_PREFIX = "MUSTER_"

_Choice = TypeVar("_Choice", bound=StrEnum)
_SWITCHES = {"yes": "true", "on": "true", "no": "false", "off": "false"}


def given(value: object) -> Scalar:
    """The single value, which must be there; raises FieldError for a key that is followed by nothing."""
    written = scalar(value)
    if written.value is None:
        raise FieldError('has no value; give one, or remove the key (an empty text is "")')
    return written


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    return next(iter(difflib.get_close_matches(word, sorted(known), 1)), None)


def verbatim(value: object) -> str:
    """Text as it was written, whatever YAML thinks it means; raises FieldError for what is not a single value."""
    text = given(value).text
    if "\0" in text:
        raise FieldError("holds a NUL character, which no program can be given")
    return text


def _filled(value: object) -> str:
    text = verbatim(value)
    if not text.strip():
        raise FieldError("is empty")
    return text


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


def _quantity(value: object) -> Written:
    """What the parsers of quantities take: the text as written, so that 0.1 is exact; true stays true."""
    written = given(value)
    return written.value if isinstance(written.value, bool) else written.text


def _memory(least: int, value: object) -> int:
    size = parse_memory(_quantity(value))
    if size < least:
        meant = f"{size}Gi" if size * 2**30 <= MAX_MEMORY and scalar(value).text.isdigit() else None
        raise FieldError(f"is {size} bytes; the least is {format_memory(least)}", suggestion=meant)
    return size


def _cpus(value: object) -> int:
    return parse_cpus(_quantity(value))


def _duration(value: object) -> timedelta:
    return parse_duration(_quantity(value))


def _lost_after(value: object) -> timedelta:
    span = _duration(value)
    if span < SHORTEST_LOST_AFTER:
        raise FieldError(f"is {format_duration(span)}; the least is {format_duration(SHORTEST_LOST_AFTER)}")
    if span > LONGEST_LOST_AFTER:
        raise FieldError(f"is {format_duration(span)}; the most is {format_duration(LONGEST_LOST_AFTER)}")
    return span


def _backoff(value: object) -> timedelta:
    span = _duration(value)
    if span < SHORTEST_BACKOFF:
        raise FieldError(f"is {format_duration(span)}; the least is {format_duration(SHORTEST_BACKOFF)}")
    return span


def _exit_codes(value: object) -> ExitCodes:
    try:
        return parse_exit_codes(scalar(value).text)
    except ValueError as error:
        raise FieldError(str(error)) from None


def _label(value: object) -> str:
    text = verbatim(value)
    if re.fullmatch(LABEL, text):
        return text
    meant = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[:63].strip("-")
    raise FieldError(
        f"must be 1 to 63 lower-case letters, digits and hyphens, with no hyphen at the ends, not {quote(text)}",
        suggestion=meant or None,
    )


def check_port_name(value: object) -> str:
    """The name of a port; raises FieldError for what is none."""
    text = verbatim(value)
    if re.fullmatch(PORT_NAME, text):
        return text
    form = "must be a word of at most 15 lower-case letters, digits and hyphens that begins with a letter"
    meant = text.lower().replace("_", "-")
    raise FieldError(f"{form}, not {quote(text)}", suggestion=meant if re.fullmatch(PORT_NAME, meant) else None)


def check_env_name(value: object) -> str:
    """The name of a variable; raises FieldError for what is none, or is Muster's own."""
    text = verbatim(value)
    if text in RESERVED_ENV or text.startswith(RESERVED_PREFIX):
        raise FieldError("is set by Muster for every execution; remove it, or use another name")
    if re.fullmatch(ENV_NAME, text):
        return text
    meant = re.sub(r"[^A-Za-z0-9_]", "_", text)
    raise FieldError(
        f"{quote(text)} is no name of a variable: letters, digits and _, not beginning with a digit",
        suggestion=meant if re.fullmatch(ENV_NAME, meant) else None,
    )


def _node_label(value: object) -> str:
    text = verbatim(value)
    if re.fullmatch(NODE_LABEL, text):
        return text
    raise FieldError(f"{quote(text)} is no name of a label: at most 128 letters, digits and ._/- in between")


def _image(value: object) -> str:
    """An image's name, as far as it can be told to be wrong without asking a registry."""
    text = _filled(value)
    if not re.fullmatch(r"[A-Za-z0-9\[][\x21-\x7e]{0,511}", text):
        raise FieldError(f"is not the name of an image: {quote(text)}")
    registry, slash, rest = text.partition("/")
    path = rest if slash and (re.search(r"[.:]", registry) or registry == "localhost") else text
    repository = re.split(r"[:@]", path, maxsplit=1)[0]
    if not re.fullmatch(r"[a-z0-9._/-]+", repository):
        meant = text.replace(repository, repository.lower()) if repository else None
        raise FieldError(f"is not the name of an image (lower case only): {quote(text)}", suggestion=meant)
    return text


def _user(value: object) -> str:
    text = verbatim(value)
    if re.fullmatch(USER, text):
        return text
    raise FieldError(f"must be a name or number, or both parts of user:group, not {quote(text)}")


def check_absolute(value: object) -> str:
    """An absolute path; raises FieldError for what is none."""
    text = verbatim(value)
    if not text.startswith("/") or ".." in PurePosixPath(text).parts:
        raise FieldError(f"must be an absolute path without .., not {quote(text)}")
    return text


def _file_path(value: object) -> str:
    text = _filled(value)
    path = PurePosixPath(text)
    if ".." in path.parts or text.endswith("/") or path.name == "":
        raise FieldError(f"must be the path of a file, absolute or below the working directory, not {quote(text)}")
    if len(path.parts) > MOST_LEVELS:
        raise FieldError(f"leads through more than {MOST_LEVELS} directories: {quote(text)}")
    if path.is_relative_to(OWN_DIRECTORY):
        raise FieldError(f"{quote(text)} is in {OWN_DIRECTORY}, which Muster fills itself")
    return text


def check_limit(value: object) -> int:
    """A value of setrlimit(2), -1 for unlimited; raises FieldError for what is none."""
    written = given(value)
    if written.text in {"unlimited", "-1"}:
        return -1
    if isinstance(written.value, int) and not isinstance(written.value, bool) and 0 <= written.value <= MAX_ULIMIT:
        return written.value
    raise FieldError(f"must be a whole number from 0 on, or unlimited, not {kind(written)}")


def _ulimit_name(value: object) -> str:
    text = verbatim(value)
    if text in ULIMITS:
        return text
    meant = nearest(text.lower().removeprefix("rlimit_"), ULIMITS)
    raise FieldError(f"{quote(text)} is no resource limit; there are {', '.join(ULIMITS)}", suggestion=meant)


def _capability(value: object) -> str:
    text = verbatim(value)
    if text in CAPABILITIES:
        return text
    meant = text.upper().removeprefix("CAP_")
    near = meant if meant in CAPABILITIES else nearest(meant, CAPABILITIES)
    raise FieldError(f"{quote(text)} is no capability of Linux as capabilities(7) lists them", suggestion=near)


def _schema(**schema: object) -> WithJsonSchema:
    return WithJsonSchema(schema)


def _pattern(pattern: str) -> WithJsonSchema:
    return _schema(type="string", pattern=f"^{pattern}$")


_SCALARS = ["string", "number", "boolean"]
_SIZE = _schema(
    anyOf=[{"type": "integer", "minimum": 1}, {"type": "string", "pattern": r"^[0-9.]+ ?([kMGTP]|[KMGTP]i)?$"}]
)

Verbatim = Annotated[str, BeforeValidator(verbatim), _schema(type=_SCALARS)]
Filled = Annotated[str, BeforeValidator(_filled), _schema(type=_SCALARS, minLength=1)]
PlainText = Annotated[str, BeforeValidator(lambda value: given(value).text), _schema(type="string")]
WHOLE = BeforeValidator(_whole)
"""Comes after the limits in an annotation, so that they are those of the number and of its JSON Schema."""
Flag = Annotated[bool, BeforeValidator(_flag)]
Memory = Annotated[int, BeforeValidator(partial(_memory, MIN_MEMORY)), _SIZE]
SharedMemory = Annotated[int, BeforeValidator(partial(_memory, MIN_SHM)), _SIZE]
Cpus = Annotated[
    int,
    BeforeValidator(_cpus),
    _schema(anyOf=[{"type": "number", "exclusiveMinimum": 0}, {"type": "string", "pattern": r"^[0-9.]+m?$"}]),
]
_SPAN_TEXT = {"type": "string", "pattern": "^([0-9.]+(d|h|m|s|ms)?)+$"}
Span = Annotated[
    timedelta,
    BeforeValidator(_duration),
    _schema(anyOf=[{"type": "number", "exclusiveMinimum": 0}, _SPAN_TEXT]),
]
_LOST_AFTER_SECONDS = {
    "type": "number",
    "minimum": SHORTEST_LOST_AFTER.total_seconds(),
    "maximum": LONGEST_LOST_AFTER.total_seconds(),
}
LostAfter = Annotated[timedelta, BeforeValidator(_lost_after), _schema(anyOf=[_LOST_AFTER_SECONDS, _SPAN_TEXT])]
_BACKOFF_SECONDS = {"type": "number", "minimum": SHORTEST_BACKOFF.total_seconds()}
Backoff = Annotated[timedelta, BeforeValidator(_backoff), _schema(anyOf=[_BACKOFF_SECONDS, _SPAN_TEXT])]
ExitCodeRanges = Annotated[
    ExitCodes,
    BeforeValidator(_exit_codes),
    _schema(type=["string", "integer"], pattern=r"^[0-9]+(-[0-9]+)?(,[0-9]+(-[0-9]+)?)*$"),
]
Label = Annotated[str, BeforeValidator(_label), _pattern(LABEL)]
PortName = Annotated[str, BeforeValidator(check_port_name), _pattern(PORT_NAME)]
EnvName = Annotated[str, BeforeValidator(check_env_name), _pattern(ENV_NAME)]
NodeLabel = Annotated[str, BeforeValidator(_node_label), _pattern(NODE_LABEL)]
ImageName = Annotated[str, BeforeValidator(_image), _schema(type="string", minLength=1)]
UserName = Annotated[str, BeforeValidator(_user), _schema(type=["string", "integer"])]
Absolute = Annotated[str, BeforeValidator(check_absolute), _pattern("/.*")]
FilePath = Annotated[str, BeforeValidator(_file_path), _schema(type="string", minLength=1)]
Limit = Annotated[
    int,
    BeforeValidator(check_limit),
    _schema(anyOf=[{"type": "integer", "minimum": -1}, {"const": "unlimited"}]),
]
UlimitName = Annotated[str, BeforeValidator(_ulimit_name), _schema(enum=list(ULIMITS))]
Capability = Annotated[str, BeforeValidator(_capability), _schema(enum=sorted(CAPABILITIES))]
NetworkName = Annotated[Network, BeforeValidator(partial(_one_of, Network)), _schema(enum=list(map(str, Network)))]
PullName = Annotated[
    PullPolicy, BeforeValidator(partial(_one_of, PullPolicy)), _schema(enum=list(map(str, PullPolicy)))
]
SuccessName = Annotated[
    SuccessRule, BeforeValidator(partial(_one_of, SuccessRule)), _schema(enum=list(map(str, SuccessRule)))
]
OnDisconnectName = Annotated[
    OnDisconnect, BeforeValidator(partial(_one_of, OnDisconnect)), _schema(enum=list(map(str, OnDisconnect)))
]
PackingName = Annotated[Packing, BeforeValidator(partial(_one_of, Packing)), _schema(enum=list(map(str, Packing)))]
