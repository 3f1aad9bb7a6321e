"""What a single value of a job may be: the patterns and limits, and the sentence for what breaks one.

Each function takes one value and gives what is wrong with it, or None. `job_rules` applies them to whole jobs.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

from muster.domain.data.code import JobCode
from muster.domain.jobs.disconnect import LONGEST_LOST_AFTER, SHORTEST_LOST_AFTER
from muster.domain.jobs.interactive import NEVER_IDLE, SHORTEST_IDLE
from muster.domain.jobs.job import CAPABILITIES, NODE_LABEL
from muster.domain.jobs.placing.mig import MIG_PROFILE, likely_profile
from muster.domain.jobs.restart import MAX_EXIT_CODE, SHORTEST_BACKOFF, ExitCodes
from muster.domain.jobs.secret_use import KEY_FORM, MAX_USES, ONLY_KEY, SECRETS_DIRECTORY
from muster.domain.jobs.stopping.preemption import LONGEST_PREEMPT_GRACE
from muster.domain.quantity import (
    CPUS_FORM,
    DURATION_FORM,
    MAX_CPUS,
    MAX_DURATION,
    MAX_MEMORY,
    MEMORY_FORM,
    MILLIS_PER_CPU,
    MOMENT_FORM,
    TOO_LONG,
    TOO_MANY_CPUS,
    TOO_MUCH_MEMORY,
    format_cpus,
    format_duration,
    format_memory,
)
from muster.domain.quoting import nearest, quote
from muster.domain.visible_text import hidden_in, visible

LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
CODE_TREE = r"[0-9a-f]{64}"
PORT_NAME = r"[a-z][a-z0-9-]{0,14}"
ENV_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
USER = r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?"

MAX_EXECUTIONS = 10_000
MAX_GPUS = 64
MAX_PRIORITY = 1000
MAX_PORT = 65_535
MAX_LABELS = 64
"""Labels of one job."""
MAX_LABEL_VALUE = 256
"""Characters in the value of a label of a job."""
MOST_LEVELS = 64
"""Directories that the path of an inline file leads through."""
MAX_ULIMIT = 2**63 - 1
UNLIMITED = -1
MIN_MEMORY = 6 * 2**20
"""Docker refuses a limit below 6 MiB."""
MIN_SHM = 2**20
MIN_CPU_LIMIT = 10
"""Thousandths of a CPU; Linux and Docker refuse a limit below."""
EARLIEST_BEGIN, LATEST_BEGIN = datetime(2000, 1, 1, tzinfo=UTC), datetime(2900, 1, 1, tzinfo=UTC)
"""Times that somebody may mean, and that every calendar has."""
MAX_WORD = 128 * 1024 - 1
"""Bytes of one word of a command, or of a variable with its name: Linux takes no longer ones (MAX_ARG_STRLEN)."""

OWN_DIRECTORY = "/muster"
"""Where every container finds what Muster gives it."""
ULIMITS = (
    *("core", "cpu", "data", "fsize", "locks", "memlock", "msgqueue", "nice"),
    *("nofile", "nproc", "rss", "rtprio", "rttime", "sigpending", "stack"),
)
RESERVED_ENV = frozenset(
    {
        *("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE", "NODE_RANK", "NNODES"),
        *("LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK"),
        *("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"),
    },
)
"""What an execution learns from Muster about its place and its GPUs; and every name with RESERVED_PREFIX."""
RESERVED_PREFIX = "MUSTER_"

SYSTEM_DIRECTORIES = ("/proc", "/sys", "/dev")


@dataclass(frozen=True, slots=True)
class Wrong:
    """What is wrong with a value: a sentence without its subject."""

    message: str
    suggestion: str | None = None
    """What was probably meant."""


def label(text: str) -> Wrong | None:
    """The name of a job, role, project or secret; it is safe in host names."""
    if re.fullmatch(LABEL, text):
        return None
    meant = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")[:63].strip("-")
    form = "must be 1 to 63 lower-case letters, digits and hyphens, with no hyphen at the ends"
    return Wrong(f"{form}, not {quote(text)}", meant or None)


def port_name(text: str) -> Wrong | None:
    """The name of a port; it becomes part of the name of a variable."""
    if re.fullmatch(PORT_NAME, text):
        return None
    form = "must be a word of at most 15 lower-case letters, digits and hyphens that begins with a letter"
    meant = text.lower().replace("_", "-")
    return Wrong(f"{form}, not {quote(text)}", meant if re.fullmatch(PORT_NAME, meant) else None)


def env_name(text: str) -> Wrong | None:
    """The name of a variable that is not Muster's own."""
    if text in RESERVED_ENV or text.startswith(RESERVED_PREFIX):
        return Wrong("is set by Muster for every execution; remove it, or use another name")
    if re.fullmatch(ENV_NAME, text):
        return None
    meant = re.sub(r"[^A-Za-z0-9_]", "_", text)
    return Wrong(
        f"{quote(text)} is no name of a variable: letters, digits and _, not beginning with a digit",
        meant if re.fullmatch(ENV_NAME, meant) else None,
    )


def node_label(text: str) -> Wrong | None:
    """The name of a label of nodes."""
    if re.fullmatch(NODE_LABEL, text):
        return None
    return Wrong(f"{quote(text)} is no name of a label: at most 128 letters, digits and ._/- in between")


def job_label(value: object) -> Wrong | None:
    """The value of a label by which a job is found."""
    if wrong := name_like(value):
        return wrong
    if len(text := str(value)) <= MAX_LABEL_VALUE:
        return None
    return Wrong(f"has {len(text)} characters; the value of a label has at most {MAX_LABEL_VALUE}")


def label_count(count: int) -> Wrong | None:
    """How many labels one job has."""
    return Wrong(f"has {count} labels; {MAX_LABELS} are the most") if count > MAX_LABELS else None


def plain_text(text: object) -> Wrong | None:
    """Text that a program can be given."""
    if not isinstance(text, str):
        return Wrong(f"must be text, not {text!r}")
    return Wrong("holds a NUL character, which no program can be given") if "\0" in text else None


def name_like(text: object) -> Wrong | None:
    """Text that names something: of one line, and every character of it can be seen."""
    if wrong := plain_text(text):
        return wrong
    hidden = hidden_in(str(text))
    if hidden is None:
        return None
    return Wrong(f"has the character {visible(hidden)}, which cannot be seen or acts on a terminal")


def filled(text: str) -> Wrong | None:
    """A name that says something."""
    return name_like(text) or (None if text.strip() else Wrong("is empty"))


def word(text: object) -> Wrong | None:
    """A word of a command."""
    return plain_text(text) or _short(str(text), "has a word of")


def variable(name: str, value: object) -> Wrong | None:
    """The value of a variable, which counts together with its name."""
    return plain_text(value) or _short(f"{name}={value}", "has with its name")


def _short(text: str, what: str) -> Wrong | None:
    if len(text) * 4 <= MAX_WORD or (size := len(text.encode(errors="replace"))) <= MAX_WORD:
        return None
    return Wrong(f"{what} {size} bytes; Linux takes at most {MAX_WORD}, so put it into a file")


def image(text: str) -> Wrong | None:
    """An image's name, as far as it can be told to be wrong without asking a registry."""
    if wrong := filled(text):
        return wrong
    if not re.fullmatch(r"[A-Za-z0-9\[][\x21-\x7e]{0,511}", text):
        return Wrong(f"is not the name of an image: {quote(text)}")
    registry, slash, rest = text.partition("/")
    path = rest if slash and (re.search(r"[.:]", registry) or registry == "localhost") else text
    repository = re.split(r"[:@]", path, maxsplit=1)[0]
    if re.fullmatch(r"[a-z0-9._/-]+", repository):
        return None
    meant = text.replace(repository, repository.lower()) if repository else None
    return Wrong(f"is not the name of an image (lower case only): {quote(text)}", meant)


def user(text: str) -> Wrong | None:
    """What is wrong with the user of a container, which is `uid`, `uid:gid` or `name`."""
    if re.fullmatch(USER, text):
        return None
    return Wrong(f"must be a name or number, or both parts of user:group, not {quote(text)}")


def absolute(text: str) -> Wrong | None:
    """An absolute path that does not climb."""
    if wrong := name_like(text):
        return wrong
    if text.startswith("/") and ".." not in PurePosixPath(text).parts:
        return None
    return Wrong(f"must be an absolute path without .., not {quote(text)}")


def mount_target(text: str) -> Wrong | None:
    """A path at which a container can have a mount; the sentence belongs to the mount as a whole."""
    if text.rstrip("/") == "":
        return Wrong("cannot cover the whole container; mount below /")
    if PurePosixPath(text).is_relative_to(OWN_DIRECTORY):
        return Wrong(f"cannot cover {OWN_DIRECTORY}, which Muster fills itself")
    return None


def file_path(text: str) -> Wrong | None:
    """The path of a file that Muster writes, absolute or below the working directory."""
    if wrong := filled(text):
        return wrong
    path = PurePosixPath(text)
    if ".." in path.parts or text.endswith("/") or path.name == "":
        return Wrong(f"must be the path of a file, absolute or below the working directory, not {quote(text)}")
    if len(path.parts) > MOST_LEVELS:
        return Wrong(f"leads through more than {MOST_LEVELS} directories: {quote(text)}")
    if path.is_relative_to(OWN_DIRECTORY):
        return Wrong(f"{quote(text)} is in {OWN_DIRECTORY}, which Muster fills itself")
    return None


def secret_directory(text: str) -> Wrong | None:
    """Where the files of a secret may lie in a container."""
    if wrong := absolute(text):
        return wrong
    path = PurePosixPath(text)
    if path == PurePosixPath("/"):
        return Wrong("cannot be the whole container; name a directory below /")
    if any(path.is_relative_to(each) for each in SYSTEM_DIRECTORIES):
        return Wrong(f"{quote(text)} is the system's own; name another directory")
    if path.is_relative_to(OWN_DIRECTORY) and path.parent != PurePosixPath(SECRETS_DIRECTORY):
        return Wrong(f"{quote(text)} is in {OWN_DIRECTORY}, which Muster fills itself")
    return None


def code_tree(code: JobCode) -> Wrong | None:
    """The tree of a folder that was sent; one that is still to be sent has none."""
    if re.fullmatch(CODE_TREE, code.tree) or (code.folder and not code.tree):
        return None
    said = quote(code.tree) if code.tree else "missing"
    return Wrong(f"is {said}, not the SHA-256 of a tree; `muster submit` and `muster upload` send a folder and say it")


def secret_key(name: str, key: str) -> Wrong | None:
    """The key of a secret whose value a variable gets."""
    if key == ONLY_KEY or re.fullmatch(KEY_FORM, key):
        return None
    return Wrong(f"takes for {name} a key of the secret: letters, digits and ._-, not {quote(key)}")


def secret_count(count: int) -> Wrong | None:
    """How many secrets one role names."""
    return Wrong(f"has {count} secrets; {MAX_USES} are the most") if count > MAX_USES else None


def ulimit_name(text: str) -> Wrong | None:
    """The name of a resource limit as setrlimit(2) has it, in lower case and without RLIMIT_."""
    if text in ULIMITS:
        return None
    meant = nearest(text.lower().removeprefix("rlimit_"), ULIMITS)
    return Wrong(f"{quote(text)} is no resource limit; there are {', '.join(ULIMITS)}", meant)


def mig(text: str) -> Wrong | None:
    """The profile of MIG devices, as NVIDIA writes it."""
    if re.fullmatch(MIG_PROFILE, text):
        return None
    return Wrong(f"{quote(text)} is no MIG profile; profiles are written like 1g.10gb", likely_profile(text))


def ulimit(value: int) -> Wrong | None:
    """A value of setrlimit(2), -1 for unlimited."""
    if UNLIMITED <= value <= MAX_ULIMIT:
        return None
    return Wrong(f"must be a whole number from 0 on, or unlimited, not {value}")


def ulimit_order(soft: int, hard: int) -> Wrong | None:
    """A soft limit and the hard one, which is not below it."""
    if hard == UNLIMITED or (soft != UNLIMITED and soft <= hard):
        return None
    return Wrong("has a soft limit above the hard one")


def capability(text: str) -> Wrong | None:
    """A capability of Linux without CAP_ before it."""
    if text in CAPABILITIES:
        return None
    meant = text.upper().removeprefix("CAP_")
    near = meant if meant in CAPABILITIES else nearest(meant, CAPABILITIES)
    return Wrong(f"{quote(text)} is no capability of Linux as capabilities(7) lists them", near)


def number(value: object, least: int, most: int) -> Wrong | None:
    """A whole number within its limits, both included."""
    if not isinstance(value, int) or isinstance(value, bool):
        return Wrong(f"must be a whole number, not {value!r}")
    if value < least:
        return Wrong(f"must be at least {least}, not {value}")
    return Wrong(f"must be at most {most}, not {value}") if value > most else None


def cpus(millis: int) -> Wrong | None:
    """Thousandths of a CPU."""
    if millis <= 0:
        return Wrong(f"must be above zero: {CPUS_FORM}")
    return Wrong(f"{TOO_MANY_CPUS}: {quote(format_cpus(millis))}") if millis > MAX_CPUS * MILLIS_PER_CPU else None


def memory(size: int, least: int = MIN_MEMORY) -> Wrong | None:
    """A size in bytes."""
    if size <= 0:
        return Wrong(f"must be above zero: {MEMORY_FORM}")
    if size > MAX_MEMORY:
        return Wrong(f"{TOO_MUCH_MEMORY}: {quote(format_memory(size))}")
    return Wrong(f"is {size} bytes; the least is {format_memory(least)}") if size < least else None


def cpu_limit(millis: int) -> Wrong | None:
    """Thousandths of a CPU that an execution gets at most."""
    if wrong := cpus(millis):
        return wrong
    return Wrong(f"is {millis}m; the least limit is {MIN_CPU_LIMIT}m") if millis < MIN_CPU_LIMIT else None


def duration(span: timedelta) -> Wrong | None:
    """A length of time."""
    if span <= timedelta():
        return Wrong(f"must be above zero: {DURATION_FORM}")
    return Wrong(f"{TOO_LONG}: {quote(format_duration(span))}") if span > MAX_DURATION else None


def moment(at: datetime) -> Wrong | None:
    """A point in time."""
    if at.utcoffset() is None:
        return Wrong(f"must be {MOMENT_FORM}, not {quote(str(at))}")
    earliest, latest = EARLIEST_BEGIN, LATEST_BEGIN
    within = earliest <= at < latest
    return None if within else Wrong(f"must be between {earliest.year} and {latest.year - 1}, not {quote(str(at))}")


def lost_after(span: timedelta) -> Wrong | None:
    """How long a node may be silent."""
    return duration(span) or _within(span, SHORTEST_LOST_AFTER, LONGEST_LOST_AFTER)


def idle(span: timedelta) -> Wrong | None:
    """How long a job may go unused; zero is for ever."""
    return None if span == NEVER_IDLE else duration(span) or _within(span, SHORTEST_IDLE, MAX_DURATION)


def setup(text: str) -> Wrong | None:
    """The command that an interactive job begins with; empty: none."""
    if wrong := word(text):
        return wrong
    return Wrong("is blank; give a command for the shell, or leave it out") if text and not text.strip() else None


def preempt(span: timedelta) -> Wrong | None:
    """How long user code has after it was told that its job is preempted."""
    return duration(span) or _within(span, timedelta(), LONGEST_PREEMPT_GRACE)


def backoff(span: timedelta) -> Wrong | None:
    """The pause between restarts."""
    return duration(span) or _within(span, SHORTEST_BACKOFF, MAX_DURATION)


def exit_codes(codes: ExitCodes) -> Wrong | None:
    """Exit codes of user code that failed."""
    if all(1 <= first <= last <= MAX_EXIT_CODE for first, last in codes.ranges):
        return None
    return Wrong(f"must lie in 1-{MAX_EXIT_CODE}, smaller number first, not {quote(str(codes))}")


def _within(span: timedelta, least: timedelta, most: timedelta) -> Wrong | None:
    if span < least:
        return Wrong(f"is {format_duration(span)}; the least is {format_duration(least)}")
    return Wrong(f"is {format_duration(span)}; the most is {format_duration(most)}") if span > most else None


def twice(what: str, value: str, first: str) -> Wrong:
    """A value that the entry `first` has as well, where all must differ."""
    return Wrong(f"{quote(value)} is {what} of {first}, too")
