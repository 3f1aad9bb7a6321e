"""What is wrong with a preset by itself, and what of it a policy refuses."""

from collections.abc import Iterator, Sequence

from pydantic import ValidationError

from muster.domain.fault import Fault, Path
from muster.domain.fleet.policies.policy import JobPolicy
from muster.domain.fleet.policies.preset import LONGEST_PRESET, Preset, PresetKind, document_text
from muster.domain.quoting import did_you_mean
from muster.jobfile.build import Builder
from muster.jobfile.checking import MAX_PROBLEMS
from muster.jobfile.document import KEY, Listing, Loc, Node, Scalar, Table, kind, unfold
from muster.jobfile.errors import FieldError
from muster.jobfile.load import node_of
from muster.jobfile.models import JobKeys
from muster.jobfile.policies.issues import policy_issues
from muster.jobfile.presets.keys import keys_of_kind
from muster.jobfile.presets.using import ROLES_KEY
from muster.jobfile.sentences import findings

_ABSENCE = frozenset({"required", "edit", "add"})
"""Rules about what a job file says or leaves out, which no preset breaks."""
_WHOLE = "preset"
"""The place of what is wrong with all of a preset."""
_ANYTHING = Scalar(value="preset", text="preset")
"""Stands for a name and an image, which a preset need not say."""


def preset_faults(preset: Preset, policies: Sequence[JobPolicy]) -> Sequence[Fault]:
    """All that is wrong with a preset, or else all that policies refuse of it; empty: it may be kept."""
    try:
        root = node_of(preset.document)
    except FieldError as error:
        return [Fault(path=(_WHOLE,), message=error.message)]
    assert isinstance(root, Table)
    if len(document_text(preset.document)) > LONGEST_PRESET:
        return [Fault(path=(_WHOLE,), message=f"is longer than {LONGEST_PRESET // 1024} KiB as JSON")]
    if found := fragment_problems(root, preset.kind):
        return [_fault(loc, error) for loc, error in found]
    return list(dict.fromkeys(_refused(_Probe(root), policies)))


def fragment_problems(root: Table, of: PresetKind) -> Sequence[tuple[Loc, FieldError]]:
    """What is wrong with the keys and values of a preset, each with its place."""
    problems = list(_wrong_keys(root, of))
    if not problems:
        probe = _Probe(root)
        try:
            probe.keys()
        except ValidationError as error:
            problems += ((probe.place(loc), wrong) for loc, wrong in findings(error))
        problems += _from_elsewhere(root)
    return problems[:MAX_PROBLEMS]


def _wrong_keys(root: Table, of: PresetKind) -> Iterator[tuple[Loc, FieldError]]:
    yield from _unknown(root, (), keys_of_kind(of), of)
    roles = root.entries.get(ROLES_KEY)
    if isinstance(roles, Listing) and of is PresetKind.TEMPLATE:
        return
    if roles is not None and not isinstance(roles, Table):
        yield (ROLES_KEY,), FieldError(f"must be a map by the name of a role, not {kind(roles)}")
    elif roles is not None:
        for name, keys in roles.entries.items():
            if isinstance(keys, Table):
                yield from _unknown(keys, (ROLES_KEY, name), keys_of_kind(of, in_role=True), of)
            else:
                yield (ROLES_KEY, name), FieldError(f"must be a map, not {kind(keys)}")


def _unknown(table: Table, at: Loc, known: frozenset[str], of: PresetKind) -> Iterator[tuple[Loc, FieldError]]:
    for name in table.entries:
        if name not in known:
            which = f"a preset of the kind {of} has" if at == () else "a role has in it"
            yield (*at, name, KEY), FieldError(f"is no key that {which}{did_you_mean(name, sorted(known))}")


def _from_elsewhere(root: Table) -> Iterator[tuple[Loc, FieldError]]:
    """What names something beside a file, where a preset is not."""
    roles = root.entries.get(ROLES_KEY)
    inner = _roles_of(roles) if roles is not None else ()
    for at, table in [((), root), *inner]:
        files = table.entries.get("files")
        for number, file in enumerate(files.items if isinstance(files, Listing) else ()):
            if isinstance(file, Table) and "source" in file.entries:
                yield (*at, "files", number, "source"), FieldError("cannot be read from a preset; give the content")
        code = table.entries.get("code")
        folder = code.entries.get("folder") if isinstance(code, Table) else code
        if folder is not None and not (isinstance(folder, Scalar) and folder.value is None):
            yield (*at, "code"), FieldError("cannot be a folder in a preset; name a Git repository, or a tree")


def _roles_of(roles: Node) -> Iterator[tuple[Loc, Table]]:
    parts: Iterator[tuple[str | int, Node]] = iter(())
    if isinstance(roles, Table):
        parts = iter(roles.entries.items())
    elif isinstance(roles, Listing):
        parts = iter(enumerate(roles.items))
    yield from (((ROLES_KEY, part), table) for part, table in parts if isinstance(table, Table))


class _Probe:
    """A job that says what a preset says, and as little as can be beside that."""

    def __init__(self, root: Table) -> None:
        stripped = without_nulls(root)
        roles = stripped.entries.get(ROLES_KEY)
        self._names = list(roles.entries) if isinstance(roles, Table) else []
        """Names of the roles of which the preset says something."""
        entries: dict[str, Node] = {"name": _ANYTHING, "image": _ANYTHING, **stripped.entries}
        if isinstance(roles, Table):
            named = (_named(name, keys) for name, keys in roles.entries.items())
            entries[ROLES_KEY] = Listing(items=tuple(named), at=roles.at)
            if not self._names:
                del entries[ROLES_KEY]
        self._entries = entries
        self._root = stripped

    def keys(self) -> JobKeys:
        """The keys of the job; raises ValidationError."""
        return JobKeys.model_validate(unfold(Table(entries=self._entries), lambda scalar: scalar))

    def place(self, loc: Loc) -> Loc:
        """Where in the preset that stands which has a place in the job."""
        if self._names and len(loc) > 1 and loc[0] == ROLES_KEY and isinstance(loc[1], int):
            return (ROLES_KEY, self._names[loc[1]], *loc[2:])
        return loc

    def said_at(self, path: Path) -> Path | None:
        """Where the preset says what stands at a place of the job, as faults have it; None: it does not."""
        if path[0] != ROLES_KEY:
            return path if path[0] in self._root.entries else None
        if len(path) == 1:
            return path if ROLES_KEY in self._root.entries else None
        place = self.place(path)
        key = str(path[2])
        in_role = self._role(int(path[1]))
        if in_role is not None and key in in_role.entries:
            return place
        top = "workers" if key == "count" else key
        return (top, *path[3:]) if top in self._root.entries else None

    def _role(self, number: int) -> Table | None:
        roles = self._entries.get(ROLES_KEY)
        role = roles.items[number] if isinstance(roles, Listing) and number < len(roles.items) else None
        return role if isinstance(role, Table) else None


def _named(name: str, keys: Node) -> Node:
    assert isinstance(keys, Table)
    return Table(entries={"name": Scalar(value=name, text=name), **keys.entries}, keys=keys.keys, at=keys.at)


def without_nulls(table: Table) -> Table:
    """The map without what it takes away, at any depth; lists stay as they are."""
    kept: dict[str, Node] = {}
    for name, value in table.entries.items():
        if isinstance(value, Table):
            kept[name] = without_nulls(value)
        elif not (isinstance(value, Scalar) and value.value is None):
            kept[name] = value
    return Table(entries=kept, keys=table.keys, at=table.at)


def _refused(probe: _Probe, policies: Sequence[JobPolicy]) -> Iterator[Fault]:
    if not any(policy.rules for policy in policies):
        return
    spec = Builder(probe.keys(), None).spec()
    for issue in policy_issues(spec, policies):
        said = probe.said_at(issue.path) if issue.rule not in _ABSENCE else None
        if said is not None:
            fault = issue.fault
            yield Fault(path=said, message=fault.message, suggestion=fault.suggestion)


def _fault(loc: Loc, error: FieldError) -> Fault:
    return Fault(path=tuple(part for part in loc if part != KEY), message=error.message, suggestion=error.suggestion)
