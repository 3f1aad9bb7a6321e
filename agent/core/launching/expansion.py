"""What a role runs, with the values of one execution in place of placeholders."""

from dataclasses import replace

from agent.core.launching.site import LaunchSite
from muster.domain.gangs.plan import Assignment
from muster.domain.gangs.roster import Roster, host_names
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.job import InlineFile, Role, RuntimeKind
from muster.domain.jobs.placeholders import filled, written


def expanded(who: Assignment, roster: Roster, site: LaunchSite) -> Role:
    """The role as this execution runs it; raises ExecutionError for a placeholder that has no value here."""
    role = who.role
    if not role.expand:
        return role
    values = _Values(who, roster, site)
    return replace(
        role,
        entrypoint=None if role.entrypoint is None else tuple(map(values.fill, role.entrypoint)),
        command=tuple(map(values.fill, role.command)),
        env={name: values.fill(value) for name, value in role.env.items()},
        files=tuple(map(values.fill_file, role.files)),
    )


class _Values:
    """The values of one execution."""

    def __init__(self, who: Assignment, roster: Roster, site: LaunchSite) -> None:
        self._roster = roster
        self._names = list(host_names(roster))
        self._contained = who.role.runtime is RuntimeKind.DOCKER
        self._listened = roster.listened(who.rank)
        self._alone = {
            "job": who.job,
            "attempt": str(who.attempt),
            "project": who.project,
            "role": who.role.name,
            "name": self._names[who.rank],
            "rank": str(who.rank),
            "world_size": str(who.world_size),
            "node": roster.nodes[who.rank],
            "address": roster.addresses[who.rank],
            "master": roster.master_address,
            "master-port": str(roster.master_port),
            "config": site.config,
            "outputs": site.outputs,
        }

    def fill(self, text: str) -> str:
        return filled(text, self._value)

    def fill_file(self, file: InlineFile) -> InlineFile:
        return replace(file, content=self.fill(file.content.decode()).encode()) if file.is_text else file

    def _value(self, name: str) -> str:
        try:
            match name.split(":"):
                case ["address", execution]:
                    return self._roster.addresses[self._names.index(execution)]
                case ["host", execution]:
                    address = self._roster.addresses[self._names.index(execution)]
                    return execution if self._contained else address
                case ["port", port]:
                    return str(self._listened[port])
                case ["port", execution, port]:
                    member = self._roster.member(self._names.index(execution))
                    return str({lease.name: lease.host_port for lease in member.ports}[port])
                case _:
                    return self._alone[name]
        except (KeyError, ValueError):
            message = f"expand: {written(name)} has no value in this execution"
            raise ExecutionError(FailureKind.INVALID_OPTION, message) from None
