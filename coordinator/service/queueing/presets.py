"""Operations on presets: named fragments of job files, of the fleet and of projects."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace

from coordinator.clock import wall_time
from coordinator.service.operations import Operation, Operations
from coordinator.trust.caller import Caller
from coordinator.trust.presets import Presets
from muster.domain.errors import UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, Access, no_project
from muster.domain.fleet.policies.policy import JobPolicy
from muster.domain.fleet.policies.preset import Preset, PresetId, PresetKind
from muster.jobfile.presets import refuse_preset_faults


class PresetOperations:
    """What callers may do with presets; an empty project is the default one, `*` the fleet."""

    def __init__(
        self, operations: Operations, presets: Presets, policies_of: Callable[[str], Sequence[JobPolicy]]
    ) -> None:
        """`policies_of`: the policies that jobs of a project keep."""
        self._operations = operations
        self._presets = presets
        self._policies_of = policies_of

    async def put(self, caller: Caller, wish: Preset) -> Preset:
        """The preset as its newest version now is; what that said already makes no other one."""
        project = caller.meant_project(wish.project)
        async with self._operations.begin(caller, "presets.put", _target(project, wish)) as operation:
            _require(operation, project)
            made = replace(wish, project=project, version=0, made_at=wall_time(), made_by=caller.name)
            await asyncio.to_thread(refuse_preset_faults, made, self._policies_of(project))
            return await self._presets.put(made, operation.done())

    async def get(self, caller: Caller, project: str, kind: PresetKind, name: str, version: int = 0) -> Preset:
        """One version of the preset that jobs of a project mean by a name; 0: the newest."""
        project = caller.meant_project(project)
        async with self._operations.begin(caller, "presets.get", project):
            _require_look(caller, project)
            return await self._presets.version(self._presets.meant(project, kind, name), version)

    async def list(self, caller: Caller, project: str) -> Sequence[Preset]:
        """The newest version of each preset that jobs of a project may use, its own first."""
        project = caller.meant_project(project)
        async with self._operations.begin(caller, "presets.list", project):
            _require_look(caller, project)
            return self._presets.usable_in(project)

    async def history(self, caller: Caller, project: str, kind: PresetKind, name: str) -> Sequence[Preset]:
        """All versions of the preset that jobs of a project mean by a name, the newest first."""
        project = caller.meant_project(project)
        async with self._operations.begin(caller, "presets.history", project):
            _require_look(caller, project)
            return await self._presets.history(self._presets.meant(project, kind, name))

    async def remove(self, caller: Caller, project: str, kind: PresetKind, name: str) -> None:
        """Forget all versions of a preset; jobs that were made with it stay what they are."""
        project = caller.meant_project(project)
        which = PresetId(project=project, kind=kind, name=name)
        async with self._operations.begin(caller, "presets.remove", _target(project, which)) as operation:
            operation.require_access(project)
            await self._presets.remove(which, operation.done())


def _target(project: str, which: Preset | PresetId) -> str:
    return f"{project}/{which.kind}/{which.name}"


def _require(operation: Operation, project: str) -> None:
    """Ask whether the caller may do it in a project, or with presets of the fleet."""
    if project == EVERYWHERE:
        operation.require_access(project)
    else:
        operation.require_in(project)


def _require_look(caller: Caller, project: str) -> None:
    """Raise UnknownNameError for a project of which the caller must not know; those of the fleet concern everybody."""
    if project != EVERYWHERE and not caller.may(Access.MEMBER, project):
        raise UnknownNameError(no_project(project))
