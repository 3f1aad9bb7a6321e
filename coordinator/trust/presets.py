"""Presets of the fleet and of projects: the newest version of each in memory, all others in the store."""

import asyncio
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace

from coordinator.completion import completed
from coordinator.trust.records import PresetStore, RemovedPreset, TrustChange
from muster.domain.errors import ExhaustedError, UnknownNameError
from muster.domain.fleet.access import EVERYWHERE, AuditEntry, no_project
from muster.domain.fleet.policies.preset import MOST_PRESET_VERSIONS, MOST_PRESETS, Preset, PresetId, PresetKind
from muster.domain.fleet.project_use import ProjectUse, UseKind, use_by


class Presets:
    """Every preset there is. A version is added and never changed; a name that is used again counts on."""

    def __init__(self, store: PresetStore, projects: Container[str]) -> None:
        """`projects`: those that there are, kept by somebody else."""
        self._store = store
        self._projects = projects
        self.writing = asyncio.Lock()
        """Held from the look at what is known until memory has what is durable."""
        self._known: dict[PresetId, Preset] = {}
        self._last: dict[PresetId, int] = {}
        """The highest number that a version had, also of what was removed."""
        for each in store.load_presets():
            self._last[each.id] = each.version
            if isinstance(each, Preset):
                self._known[each.id] = each

    def __len__(self) -> int:
        """How many there are."""
        return len(self._known)

    def usable_in(self, project: str) -> Sequence[Preset]:
        """The newest version of each that jobs of a project may use, its own first; with `*` those of the fleet."""
        return [each for owner in dict.fromkeys((project, EVERYWHERE)) for each in self._of(owner)]

    def newest(self, which: PresetId) -> Preset:
        """The newest version of a preset; raises UnknownNameError."""
        found = self._known.get(which)
        if found is None:
            raise UnknownNameError(f"{which.source} has no preset {which.kind} {which.name[:80]!r}")
        return found

    def meant(self, project: str, kind: PresetKind, name: str) -> PresetId:
        """The preset that jobs of a project mean: its own, else that of the fleet. Raises UnknownNameError."""
        owners = dict.fromkeys((project, EVERYWHERE))
        found = (PresetId(project=owner, kind=kind, name=name) for owner in owners)
        which = next((each for each in found if each in self._known), None)
        if which is None:
            raise UnknownNameError(f"neither project {project} nor the fleet has a preset {kind} {name[:80]!r}")
        return which

    async def version(self, which: PresetId, number: int = 0) -> Preset:
        """One version of a preset, 0: the newest. Raises UnknownNameError."""
        newest = self.newest(which)
        if number in {0, newest.version}:
            return newest
        found = await asyncio.to_thread(self._store.preset_version, which, number)
        if found is None:
            raise UnknownNameError(f"{which} of {which.source} has no version {number}; the newest is {newest.version}")
        return found

    async def history(self, which: PresetId) -> Sequence[Preset]:
        """All versions of a preset, the newest first; raises UnknownNameError."""
        self.newest(which)
        return await asyncio.to_thread(self._store.preset_versions, which)

    def uses_of(self, project: str) -> tuple[ProjectUse, ...]:
        """The presets that keep a project from being removed."""
        return use_by(UseKind.PRESET, [f"{each.kind} {each.name}" for each in self._of(project)])

    async def put(self, preset: Preset, entry: AuditEntry) -> Preset:
        """Keep the next version of a preset; what the newest one says already makes none.

        Raises UnknownNameError for a project that is not there, or ExhaustedError where there are too many.
        """
        async with self.writing:
            project, which = preset.project, preset.id
            if project != EVERYWHERE and project not in self._projects:
                raise UnknownNameError(no_project(project))
            before = self._known.get(which)
            if before is not None and (before.document, before.title) == (preset.document, preset.title):
                return before
            version = self._last.get(which, 0) + 1
            if before is None and len(list(self._of(project))) >= MOST_PRESETS:
                raise ExhaustedError(f"{which.source} has {MOST_PRESETS} presets, which is the most")
            if version > MOST_PRESET_VERSIONS:
                raise ExhaustedError(
                    f"{which} has {MOST_PRESET_VERSIONS} versions, which is the most; use another name"
                )
            made = replace(preset, version=version)
            await self._commit(made, replace(entry, result=f"{entry.result}, version {version}"))
            self._known[which], self._last[which] = made, version
            return made

    async def remove(self, which: PresetId, entry: AuditEntry) -> None:
        """Forget all versions of a preset, but for how many there were. Raises UnknownNameError."""
        async with self.writing:
            newest = self.newest(which)
            gone = RemovedPreset(project=which.project, kind=which.kind, name=which.name, version=newest.version)
            await self._commit(gone, entry)
            del self._known[which]

    def _of(self, project: str) -> Iterator[Preset]:
        found = [each for each in self._known.values() if each.project == project]
        yield from sorted(found, key=lambda each: (list(PresetKind).index(each.kind), each.name))

    async def _commit(self, change: TrustChange, entry: AuditEntry) -> None:
        """Make a change durable; a caller who goes away meanwhile still learns whether it is."""
        await completed(asyncio.to_thread(self._store.commit_trust, (change,), (entry,)))
