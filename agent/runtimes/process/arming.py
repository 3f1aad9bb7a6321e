"""Gets everything ready that a program finds at its start: its files, its secrets, its environment, and itself."""

import os
import posixpath
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent.code.places import files_in
from agent.code.store import CodeStore
from agent.core.launching.job_user import USER_NAME, JobUser
from agent.executions.files import write_config, write_inline
from agent.executions.layout import ExecutionDirectory
from agent.executions.owner import give_all, process_workdir, refuse_elsewhere, renew
from agent.logs.mask import Mask
from agent.runtimes.process.attaching.asking import companion_start, parent_of_main_program
from agent.runtimes.process.faults import write_failure
from agent.runtimes.process.order import Groups, ProgramOrder
from agent.runtimes.process.spares import SpareSupervisors
from agent.secrets.directories import SecretDirectories
from muster.domain.gangs.plan import Launch
from muster.domain.ids import ExecutionId
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import Role


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What preparing found out and arming needs."""

    role: Role
    environment: Mapping[str, str]
    spares: SpareSupervisors
    secrets: SecretDirectories
    code: CodeStore
    user: JobUser | None
    """The user that the program runs as; None: the agent's."""
    own_user: bool
    """Whether nothing but this execution runs as that user."""
    groups: Groups
    """The program's cgroups, each with the one to which its supervisor returns."""

    def order(self, directory: ExecutionDirectory, launch: Launch, log_limit: int) -> ProgramOrder:
        """Write the files and find the program; the order for its supervisor. Raises ExecutionError."""
        role = launch.role or self.role
        workdir = process_workdir(role, directory)
        try:
            self._write(directory, workdir, role, launch)
        except OSError as problem:
            raise write_failure(directory, problem) from problem
        secret = {name: value.decode(errors="surrogateescape") for name, value in launch.secrets.env.items()}
        env = {**self.environment, **self._home(directory), **launch.defaults, **launch.env, **secret}
        if launch.programs:
            env["PATH"] = f"{directory.programs.absolute()}{os.pathsep}{env['PATH']}"
        command, attended = (*(role.entrypoint or ()), *role.command), launch.main_program
        return ProgramOrder(
            directory=str(directory.path.absolute()),
            log=str(directory.log.absolute()),
            log_limit=log_limit,
            command=command,
            path=str(Path(find_program(command, env["PATH"], workdir)).absolute()),
            env=env,
            workdir=str(workdir.absolute()),
            user=None if self.user is None else (self.user.uid, self.user.gid),
            own_user=self.own_user,
            groups=self.groups,
            parent=() if attended is None else parent_of_main_program(directory, attended.streams),
            companion=companion_start(directory, launch.ticket).command if launch.ticket else (),
            ticket=launch.ticket if attended is None else attended.ticket,
            masked=tuple(pattern.decode("latin-1") for pattern in Mask.of(launch.secrets.masked).patterns),
        )

    def _write(self, directory: ExecutionDirectory, workdir: Path, role: Role, launch: Launch) -> None:
        write_config(directory, launch)
        files = {posixpath.normpath(workdir / file.path): file for file in role.files}
        copied = role.code is not None and role.code.writable
        in_code = files_in(files, str(directory.code)) if copied else {}
        if copied:
            self.code.lay_out(ExecutionId(directory.path.name), directory.code, in_code)
        if not workdir.is_dir():
            message = f"the working directory {workdir} is not there; make it on the node or leave it out"
            raise ExecutionError(FailureKind.INVALID_OPTION, message)
        if self.user is not None:
            refuse_elsewhere(role.files, workdir, directory)
            renew(directory.work)
        write_inline([file for file in role.files if file not in in_code.values()], workdir)
        if self.user is not None:
            give_all(directory.work, self.user)
            if copied:
                give_all(directory.code, self.user)
        if launch.secrets.files:
            execution = ExecutionId(directory.path.name)
            reader = os.geteuid() if self.user is None else self.user.uid
            self.secrets.make(execution, launch.secrets)
            self.secrets.fill(execution, launch.secrets, reader)
            self.secrets.open_to(execution, reader)

    def _home(self, directory: ExecutionDirectory) -> Mapping[str, str]:
        """Variables for the user's own home; the home of the agent's user is not for others."""
        if self.user is None:
            return {}
        return {"HOME": str(directory.work.absolute()), "USER": USER_NAME, "LOGNAME": USER_NAME}


def find_program(command: Sequence[str], search: str, workdir: Path) -> str:
    """Path of the program of a command, as a shell in the working directory would find it."""
    name = command[0]
    if "/" in name:
        found = shutil.which(str(workdir / name))
    else:
        found = shutil.which(name, path=os.pathsep.join(str(workdir / each) for each in search.split(os.pathsep)))
    if found is None:
        reason = _why_not(workdir / name) if "/" in name else f"looked in {search}"
        raise ExecutionError(FailureKind.COMMAND_NOT_FOUND, f'no program "{name}" on the node: {reason}')
    interpreter = _interpreter(found)
    if interpreter is not None and shutil.which(interpreter) is None:
        reason = f"{found} is a script for {interpreter}, which is not there"
        raise ExecutionError(FailureKind.COMMAND_NOT_FOUND, f'no program "{name}" on the node: {reason}')
    return found


def _why_not(path: Path) -> str:
    return f"{path} is not executable" if path.exists() else f"there is no {path}"


def _interpreter(path: str) -> str | None:
    """The program that a script names in its first line."""
    try:
        # It may be a named pipe by now, with nobody at its other end.
        with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb", buffering=0) as file:  # noqa: PTH123 - a pipe must not hold the agent up
            first = (file.read(256) or b"").partition(b"\n")[0]
    except OSError:
        return None  # a program may be executable without being readable
    return os.fsdecode(first[2:].split()[0]) if first.startswith(b"#!") and first[2:].split() else None
