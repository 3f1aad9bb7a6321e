"""What is allowed in a job and most probably not meant."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from muster.domain.fault import Fault
from muster.domain.jobs.frameworks.dialect import Dialect
from muster.domain.jobs.frameworks.framework import FrameworkName
from muster.domain.jobs.job import JobSpec, Role
from muster.domain.jobs.placing.portion import WHOLE_GPU

_SHELLS = frozenset({"sh", "bash", "dash", "zsh", "ksh"})
_BEFORE_PROGRAM = frozenset({"exec", "env", "nice", "time"})
_ENDS = frozenset({";", "&&", "||", "|", "&", "(", ")"})
_OF_MPI = ("--host", "-host", "-H", "-f", "--machinefile", "-machinefile")
_LAUNCHERS = {
    "torchrun": (FrameworkName.PYTORCH, ("--nnodes", "--standalone", "--rdzv")),
    "accelerate": (FrameworkName.PYTORCH, ("--num_machines", "--config_file")),
    "mpirun": (FrameworkName.MPI, _OF_MPI),
    "mpiexec": (FrameworkName.MPI, _OF_MPI),
    "horovodrun": (FrameworkName.HOROVOD, ("--host", "-H")),
    "deepspeed": (FrameworkName.DEEPSPEED, ("--hostfile", "-H", "--no_ssh", "--num_nodes", "--master_addr")),
}
"""Programs that start the processes of one machine: their framework, and options that tell them of other machines."""
_WITH_NCCL = frozenset({FrameworkName.PYTORCH, FrameworkName.DEEPSPEED, FrameworkName.HOROVOD})
_MODULES = {
    "torch.distributed.run": "torchrun",
    "torch.distributed.launch": "torchrun",
    "accelerate.commands.launch": "accelerate",
}


def warnings(spec: JobSpec) -> Iterator[Fault]:
    """Each thing that its user probably did not mean; a job with some of them is valid all the same."""
    if spec.framework is None and Dialect.RUNAI not in spec.dialects and spec.size > 1:
        for number, role in enumerate(spec.roles):
            launcher = next(filter(None, map(_lonely_launcher, _commands(role))), None)
            if launcher is not None and not any(name.startswith("PET_") for name in role.env):
                message = (
                    f"runs {launcher} without a word about the other executions: each of the {spec.size} would train "
                    f"by itself, as a world of its own; add the line `framework: {_LAUNCHERS[launcher][0]}`"
                )
                yield Fault(path=("roles", number, "command"), message=message)
    yield from _shared_gpus(spec)


def _shared_gpus(spec: JobSpec) -> Iterator[Fault]:
    if spec.framework is None or spec.framework.name not in _WITH_NCCL or spec.max_per_node == 1 or spec.size == 1:
        return
    for number, role in enumerate(spec.roles):
        if _may_share_a_gpu(role):
            message = (
                "may have several executions on one GPU, which NCCL refuses; say max_per_node: 1, ask for more than "
                "half of a GPU, or use gloo"
            )
            yield Fault(path=("roles", number, "resources"), message=message)


def _may_share_a_gpu(role: Role) -> bool:
    portion = role.resources.portion
    return portion is not None and (portion.memory > 0 or 2 * portion.thousandths <= WHOLE_GPU)


def _commands(role: Role) -> Iterator[Sequence[str]]:
    """The simple commands of a role, as far as its words tell them: those of a shell's text one by one."""
    words = role.command
    if len(words) > 2 and PurePosixPath(words[0]).name in _SHELLS and words[1].startswith("-") and "c" in words[1]:  # noqa: PLR2004 - sh -c TEXT
        yield from _simple_commands(words[2])
    else:
        yield words


def _simple_commands(text: str) -> Iterator[Sequence[str]]:
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        command: list[str] = []
        try:
            for word in lexer:
                if word in _ENDS:
                    yield command
                    command = []
                else:
                    command.append(word)
        except ValueError:  # a quotation that goes on in the next line; nobody knows what is a word
            return
        yield command


def _lonely_launcher(words: Sequence[str]) -> str | None:
    """The launcher that a command starts for one machine; None where it starts none, or one that knows of others."""
    rest = list(words)
    while rest and (rest[0] in _BEFORE_PROGRAM or ("=" in rest[0] and not rest[0].startswith("-"))):
        rest.pop(0)
    if not rest:
        return None
    name = PurePosixPath(rest[0]).name
    if name.startswith("python") and len(rest) > 2 and rest[1] == "-m":  # noqa: PLR2004 - python -m MODULE
        name, rest = _MODULES.get(rest[2], ""), rest[2:]
    elif name == "accelerate" and rest[1:2] != ["launch"]:
        return None
    options = [word.replace("-", "_") for word in rest[1:] if word.startswith("-")]
    _, told = _LAUNCHERS.get(name, (None, None))
    if told is None or any(word.startswith(each.replace("-", "_")) for word in options for each in told):
        return None
    return name
