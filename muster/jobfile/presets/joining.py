"""A job made of its file and of presets: what counts, which versions it is made with, and who says what."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from muster.domain.errors import InvalidJobError
from muster.domain.fault import Fault, Path, spell
from muster.domain.fleet.policies.preset import Preset
from muster.domain.jobs.job import JobSpec
from muster.domain.jobs.queueing.used_preset import UsedPreset
from muster.jobfile.checking import checked_with_places
from muster.jobfile.document import KEY, Loc, Table
from muster.jobfile.errors import FieldError
from muster.jobfile.load import node_of
from muster.jobfile.presets.job_document import table_of
from muster.jobfile.presets.merging import Merged, layer, merged
from muster.jobfile.presets.using import USE_KEY, NamedPreset, UseError, named_presets


@dataclass(frozen=True, slots=True)
class MergedJob:
    """A job and where its values come from."""

    spec: JobSpec
    used: tuple[UsedPreset, ...]
    _merged: Merged
    _where: Callable[[Path], Loc]
    """Where in the merged document that stands which the rule book names by its role."""

    @property
    def origins(self) -> Mapping[str, str]:
        """The preset that says something, by key of the job file; what the file says itself is left out."""
        found = ((spell(path), origin) for path, origin in self._merged.origins.items())
        return {key: str(origin) for key, origin in found if origin is not None}

    def of_file(self, path: Path) -> bool:
        """Whether the job file itself says something of what the rule book names."""
        return self._merged.of_file(self._where(path))

    def reworded(self, error: InvalidJobError) -> InvalidJobError:
        """What is wrong with the job by the keys of its file, and of which preset it is where it is of one."""
        if not error.faults:
            return error
        faults = [_told(self._merged, self._where(fault.path), fault) for fault in error.faults]
        return InvalidJobError.of("\n".join(map(str, faults)), faults)


def presets_of(document: str) -> Sequence[NamedPreset]:
    """The presets that the document of a job names; raises InvalidJobError."""
    try:
        return named_presets(table_of(document))
    except UseError as error:
        raise _refused([Fault(path=error.place, message=error.message)]) from None
    except FieldError as error:
        raise InvalidJobError(f"the document of the job {error.message}") from None


def job_of(document: str, project: str, presets: Sequence[Preset]) -> MergedJob:
    """The job of a document and of the presets that it names, in the order in which they are joined.

    It is in `project`, in which its caller was let, whatever the document says. Raises InvalidJobError with all that is
    wrong, by keys of the job file.
    """
    root = table_of(document)
    own = Table(entries={key: value for key, value in root.entries.items() if key != USE_KEY})
    used = tuple(_used(each) for each in presets)
    parts = [layer(_root_of(preset), each) for preset, each in zip(presets, used, strict=True)]
    made = merged([*parts, layer(own, None)])
    if made.unknown_roles:
        told = "is no role of this job; a list under roles says which there are"
        raise _refused([Fault(path=("roles", name), message=told) for name in made.unknown_roles])
    spec, found, where = checked_with_places(made.document, None)
    if spec is None:
        raise _refused(list(_faults(made, found)))
    return MergedJob(replace(spec, project=project), used, made, where)


def _faults(made: Merged, found: Sequence[tuple[Loc, FieldError]]) -> Iterator[Fault]:
    for loc, error in found:
        path = tuple(part for part in loc if part != KEY)
        yield _told(made, path, Fault(path=path, message=error.message, suggestion=error.suggestion))


def _told(made: Merged, loc: Loc, fault: Fault) -> Fault:
    origin = made.origin_of(loc)
    if origin is None:
        return Fault(path=loc, message=fault.message, suggestion=fault.suggestion)
    return Fault(path=loc, message=f"{FieldError(fault.message, suggestion=fault.suggestion)} (from {origin})")


def _refused(faults: Sequence[Fault]) -> InvalidJobError:
    return InvalidJobError.of("\n".join(map(str, faults)), faults)


def _used(preset: Preset) -> UsedPreset:
    return UsedPreset(project=preset.project, kind=preset.kind, name=preset.name, version=preset.version)


def _root_of(preset: Preset) -> Table:
    root = node_of(preset.document)
    assert isinstance(root, Table)
    return root
