"""From the flags of `muster run` to a job document: the same keys and checks as in a job file."""

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import typer

from muster.domain.data.job_source import read_job_source
from muster.domain.jobs.secret_use import SECRETS_DIRECTORY

_LONGEST_NAME = 40
_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_SHELL_WORDS = frozenset(
    {"for", "while", "until", "if", "case", "set", "export", "cd", "exec", "trap", "function", "eval", "exit"}
)
"""Words with which a line for a shell begins that say nothing of what it does."""


class RunFlags(NamedTuple):  # made in a tenth of the time of a data class, which all of `muster run` waits for
    """What was said on the command line; None and empty mean the job file's defaults."""

    command: Sequence[str] = ()
    workers: int = 1
    name: str | None = None
    image: str | None = None
    workdir: str | None = None
    user: str | None = None
    env: Sequence[str] = ()
    ports: Sequence[str] = ()
    mounts: Sequence[str] = ()
    secrets: Sequence[str] = ()
    inputs: Sequence[str] = ()
    gpus: int | None = None
    gpu_model: str | None = None
    mig: str | None = None
    gpu_portion: str | None = None
    gpu_memory: str | None = None
    cpus: str | None = None
    memory: str | None = None
    shm: str | None = None
    network: str | None = None
    placement: str | None = None
    priority: int | None = None
    job_class: str | None = None
    project: str | None = None
    framework: str | None = None
    dialects: Sequence[str] = ()
    labels: Mapping[str, str] | None = None
    success: str | None = None
    max_per_node: int | None = None
    check_in_timeout: str | None = None
    lost_after: str | None = None
    on_disconnect: str | None = None
    files: Sequence[str] = ()
    code: Path | None = None
    git: str | None = None
    ref: str | None = None
    git_path: str | None = None
    git_secret: str | None = None
    git_submodules: bool = False
    git_lfs: bool = False
    env_files: Sequence[Path] = ()
    pull: str | None = None
    entrypoint: str | None = None
    ulimits: Sequence[str] = ()
    node_labels: Sequence[str] = ()
    time_limit: str | None = None
    grace: str | None = None
    restarts: int | None = None
    infrastructure_restarts: int | None = None
    backoff: str | None = None


def run_document(flags: RunFlags, environ: Mapping[str, str]) -> dict[str, Any]:
    """The job in the keys of a job file; what was not said is left out. `environ` gives the values of bare names."""
    resources = _said(
        gpus=flags.gpus,
        gpu_model=flags.gpu_model,
        mig=flags.mig,
        gpu_portion=flags.gpu_portion,
        gpu_memory=flags.gpu_memory,
        cpus=flags.cpus,
        memory=flags.memory,
        shm=flags.shm,
    )
    timeouts = _said(
        check_in=flags.check_in_timeout, lost_after=flags.lost_after, run=flags.time_limit, grace=flags.grace
    )
    restarts = _said(limit=flags.restarts, infrastructure=flags.infrastructure_restarts, backoff=flags.backoff)
    variables = {**_from_files(flags.env_files, environ), **dict(_variable(text, environ) for text in flags.env)}
    return _said(
        name=flags.name or job_name(flags.command, flags.image),
        workers=flags.workers,
        image=flags.image,
        command=list(flags.command) or None,
        workdir=flags.workdir,
        user=flags.user,
        env=variables or None,
        ports=[_port(text) for text in flags.ports] or None,
        mounts=list(flags.mounts) or None,
        secrets=_secrets(flags.secrets) or None,
        inputs=_inputs(flags.inputs) or None,
        resources=resources or None,
        network=flags.network,
        placement=flags.placement,
        priority=flags.priority,
        **{"class": flags.job_class},
        project=flags.project,
        framework=flags.framework,
        dialects=list(flags.dialects) or None,
        labels=flags.labels,
        success=flags.success,
        max_per_node=flags.max_per_node,
        timeouts=timeouts or None,
        restarts=restarts or None,
        on_disconnect=flags.on_disconnect,
        files=[_file(text) for text in flags.files] or None,
        code=_code(flags),
        pull=flags.pull,
        entrypoint=shlex.split(flags.entrypoint) if flags.entrypoint is not None else None,
        ulimits=dict(_ulimit(text) for text in flags.ulimits) or None,
        node_labels=dict(_pair(text, "--node-label") for text in flags.node_labels) or None,
    )


def job_name(command: Sequence[str], image: str | None) -> str:
    """A name for a job that was given none: its script, else its program, else its image."""
    words = [word for word in command if not word.startswith("-")]
    if len(command) > 2 and command[1] == "-c":  # noqa: PLR2004 - sh -c TEXT, python -c TEXT
        program = PurePath(command[0]).name
        words = _programs_in(command[2]) if program in _SHELLS else [program]
    scripts = [word for word in words[1:] if re.search(r"\w\.[a-z]{1,4}$", word)]
    chosen = PurePath((scripts or words or [image or ""])[0]).name.partition(":")[0]
    stem = re.sub(r"[^a-z0-9]+", "-", chosen.rpartition(".")[0].lower() or chosen.lower())
    return stem[:_LONGEST_NAME].strip("-") or "run"


def _programs_in(line: str) -> list[str]:
    """The first word of a line for a shell that names a program; none for a loop and the like."""
    first = line.split(maxsplit=1)[:1]
    return [] if not first or first[0] in _SHELL_WORDS or not re.fullmatch(r"[\w./-]+", first[0]) else first


def _said(**values: object) -> dict[str, Any]:
    return {key: value for key, value in values.items() if value is not None}


def _variable(text: str, environ: Mapping[str, str]) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if equals:
        return name, value
    if name not in environ:
        raise typer.BadParameter(f"{name} is not set here; write {name}=value", param_hint="--env")
    return name, environ[name]


def _from_files(files: Sequence[Path], environ: Mapping[str, str]) -> dict[str, str]:
    """The variables of files with one on each line; empty lines and those that begin with # are left out."""
    found: dict[str, str] = {}
    for file in files:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise typer.BadParameter(f"cannot read {file}: {reason}", param_hint="--env-file") from None
        for line in map(str.strip, lines):
            if line and not line.startswith("#"):
                name, value = _variable(line.removeprefix("export "), environ)
                found[name] = value
    return found


def _file(text: str) -> dict[str, str]:
    source, colon, path = text.partition(":")
    return {"path": path if colon else PurePath(source).name, "source": source}


def git_code(text: str) -> dict[str, Any]:
    """A repository and what is wanted of it, `URL` or `URL@REF`; an `@` before the first name of the path is no REF."""
    scheme, slashes, rest = text.partition("://")
    authority, slash, path = rest.partition("/")
    repository, at, ref = path.rpartition("@")
    if not at or not repository or repository.endswith("/"):
        return {"git": text}
    return {"git": f"{scheme}{slashes}{authority}{slash}{repository}", "ref": ref}


def _code(flags: RunFlags) -> str | dict[str, Any] | None:
    """Where the code comes from: a folder, or a repository."""
    more = _said(
        ref=flags.ref,
        path=flags.git_path,
        secret=flags.git_secret,
        submodules=flags.git_submodules or None,
        lfs=flags.git_lfs or None,
    )
    if flags.git is None:
        if more:
            option = "--ref" if "ref" in more else f"--git-{next(iter(more))}"
            raise typer.BadParameter("says something of a repository; name that with --git", param_hint=option)
        return None if flags.code is None else str(flags.code)
    if flags.code is not None:
        raise typer.BadParameter("stands beside --code; code comes from one of them", param_hint="--git")
    code = git_code(flags.git)
    if "ref" in code and "ref" in more:
        message = f"is {flags.ref}, and --git ends with @{code['ref']}; say it in one of them"
        raise typer.BadParameter(message, param_hint="--ref")
    return code | more


def _inputs(texts: Sequence[str]) -> dict[str, Any]:
    """The inputs by their names; a name that is there again has another URL."""
    found: dict[str, Any] = {}
    for name, value in map(_input, texts):
        if name not in found:
            found[name] = value
        elif isinstance(value, dict) or isinstance(found[name], dict):
            message = f"has the input {name} twice; an input has one job, or URLs alone"
            raise typer.BadParameter(message, param_hint="--input")
        else:
            found[name] = [*(found[name] if isinstance(found[name], list) else [found[name]]), value]
    return found


def _input(text: str) -> tuple[str, Any]:
    """A file by its URL, or outputs of a job."""
    name, value = _pair(text, "--input")
    return name, {"from": value} if read_job_source(value) is not None else value


def _ulimit(text: str) -> tuple[str, Any]:
    name, value = _pair(text, "--ulimit")
    soft, colon, hard = value.partition(":")
    return name, {"soft": _number(soft), "hard": _number(hard)} if colon else _number(soft)


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() else text


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise typer.BadParameter(f"write NAME=VALUE, not {text!r}", param_hint=option)
    return name, value


def _secrets(said: Sequence[str]) -> list[dict[str, Any]]:
    """One entry for each secret, with all the variables that are said to hold something of it."""
    found: dict[str, dict[str, Any]] = {}
    for text in said:
        variable, equals, rest = text.rpartition("=")
        name, colon, key = rest.partition(":")
        if colon and not equals:
            raise typer.BadParameter(f"write VARIABLE={rest}, or {name} for files with all keys", param_hint="--secret")
        entry = found.setdefault(name, {"secret": name})
        if equals:
            entry.setdefault("env", {})[variable] = key
        else:
            entry["directory"] = f"{SECRETS_DIRECTORY}/{name}"
    return list(found.values())


def _port(text: str) -> str | dict[str, str | int]:
    name, equals, number = text.partition("=")
    if not equals:
        return name
    if not re.fullmatch(r"[0-9]{1,5}", number):
        raise typer.BadParameter(
            f"{number!r} is not a port number; write {name}=8080, or {name} to lease any free port",
            param_hint="--port",
        )
    return {"name": name, "port": int(number)}
