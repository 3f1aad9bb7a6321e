"""Job files and presets made into one document, of which each value knows where it comes from; pure.

What comes later counts: maps are joined key by key, lists and single values replaced, and null takes away. A list
under `roles` says which roles there are, and a map under it what is about roles of these names. Neither undoes the
other.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import TypeAlias

from muster.domain.jobs.queueing.used_preset import UsedPreset
from muster.jobfile.document import Listing, Loc, Node, Scalar, Table
from muster.jobfile.presets.using import ROLES_KEY

Origin: TypeAlias = UsedPreset | None
"""The version of a preset that says something; None: the job file does."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A list or a single value, which what comes later replaces; null: taken away."""

    value: Node
    origin: Origin

    @property
    def gone(self) -> bool:
        """Whether it takes away what came before."""
        return isinstance(self.value, Scalar) and self.value.value is None


@dataclass(frozen=True, slots=True)
class Branch:
    """A map, whose keys are joined with those of what came before."""

    entries: Mapping[str, "Leaf | Branch"] = field(default_factory=dict)
    fresh: bool = False
    """Whether nothing of what came before counts, as a value or null stood between."""

    @property
    def gone(self) -> bool:
        """A map is always there, if only with nothing in it."""
        return False


Part: TypeAlias = Leaf | Branch


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleParts:
    """What is said of roles."""

    listed: tuple[tuple[str, Part], ...] | None = None
    """The roles that there are, by name, where something lists them."""
    under: Branch = field(default_factory=Branch)
    """What counts of roles by name unless the list says otherwise."""
    over: Branch = field(default_factory=Branch)
    """What counts of roles by name whatever the list says."""
    fresh: bool = False
    """Whether nothing of what came before counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """What one source says, or several that were joined."""

    top: Branch = field(default_factory=Branch)
    roles: RoleParts = field(default_factory=RoleParts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """The document that counts, and where each of its values comes from."""

    document: Table
    origins: Mapping[Loc, Origin]
    """The origin of each list and single value, by the way to it."""
    unknown_roles: tuple[str, ...] = ()
    """Roles of which the job file says something, and which the job does not have."""

    def origin_of(self, loc: Loc) -> Origin:
        """Where the value at a place comes from, or what is around it."""
        for length in range(len(loc), 0, -1):
            if loc[:length] in self.origins:
                return self.origins[loc[:length]]
        return None

    def of_file(self, loc: Loc) -> bool:
        """Whether the job file itself says something at a place, or below it."""
        return any(
            origin is None and (path[: len(loc)] == loc or loc[: len(path)] == path)
            for path, origin in self.origins.items()
        )


def merged(layers: Iterable[Layer]) -> Merged:
    """What these sources say together; what comes later counts."""
    return _finished(reduce(joined, layers, Layer()))


def layer(root: Table, origin: Origin) -> Layer:
    """What one document says."""
    entries = {key: _part(value, origin) for key, value in root.entries.items() if key != ROLES_KEY}
    return Layer(top=Branch(entries), roles=_roles(root.entries.get(ROLES_KEY), origin))


def joined(before: Layer, after: Layer) -> Layer:
    """Both, of which the second counts; which two of three are joined first makes no difference."""
    return Layer(top=_over(before.top, after.top), roles=_roles_over(before.roles, after.roles))


def _part(value: Node, origin: Origin) -> Part:
    if isinstance(value, Table):
        return Branch({key: _part(inner, origin) for key, inner in value.entries.items()})
    return Leaf(value, origin)


def _roles(said: Node | None, origin: Origin) -> RoleParts:
    match said:
        case None:
            return RoleParts()
        case Table():
            return RoleParts(under=Branch({name: _part(keys, origin) for name, keys in said.entries.items()}))
        case Listing():
            return RoleParts(listed=tuple((_name(each), _part(each, origin)) for each in said.items))
        case Scalar(value=None):
            return RoleParts(fresh=True)
        case Scalar():  # is found wrong with what it is joined to
            return RoleParts(listed=(("", Leaf(said, origin)),))


def _name(role: Node) -> str:
    name = role.entries.get("name") if isinstance(role, Table) else None
    return name.text if isinstance(name, Scalar) else ""


def _over(before: Branch, after: Branch) -> Branch:
    if after.fresh:
        return after
    entries = dict(before.entries)
    for key, part in after.entries.items():
        entries[key] = _part_over(entries.get(key), part)
    return Branch(entries, fresh=before.fresh)


def _part_over(before: Part | None, after: Part) -> Part:
    if before is None or isinstance(after, Leaf):
        return after
    return _over(before, after) if isinstance(before, Branch) else replace(after, fresh=True)


def _roles_over(before: RoleParts, after: RoleParts) -> RoleParts:
    if after.fresh:
        return after
    if after.listed is not None:
        under = _over(_over(before.under, before.over), after.under)
        return RoleParts(listed=after.listed, under=under, over=after.over, fresh=before.fresh)
    if before.listed is None:
        return RoleParts(under=_over(before.under, after.under), fresh=before.fresh)
    return replace(before, over=_over(before.over, after.under))


def _finished(all_said: Layer) -> Merged:
    origins: dict[Loc, Origin] = {}
    entries = dict(_kept(all_said.top, (), origins).entries)
    roles, names = all_said.roles, set[str]()
    if roles.listed is not None:
        items: list[Node] = []
        for number, (name, part) in enumerate(roles.listed):
            names.add(name)
            items.append(_role(roles, name, part, (ROLES_KEY, number), origins))
        entries[ROLES_KEY] = Listing(items=tuple(items))
    named = {**roles.under.entries, **roles.over.entries}
    lost = (name for name, part in named.items() if name not in names and _is_of_file(part))
    return Merged(document=Table(entries=entries), origins=origins, unknown_roles=tuple(lost))


def _role(roles: RoleParts, name: str, part: Part, at: Loc, origins: dict[Loc, Origin]) -> Node:
    if isinstance(part, Leaf):
        origins[at] = part.origin
        return part.value
    for kept, below in ((roles.under, True), (roles.over, False)):
        beside = kept.entries.get(name)
        if isinstance(beside, Branch):
            part = _over(beside, part) if below else _over(part, beside)
    return _kept(part, at, origins)


def _kept(branch: Branch, at: Loc, origins: dict[Loc, Origin]) -> Table:
    """The map without what is taken away; notes where each value comes from."""
    entries: dict[str, Node] = {}
    for key, part in branch.entries.items():
        if isinstance(part, Branch):
            entries[key] = _kept(part, (*at, key), origins)
        elif not part.gone:
            entries[key] = part.value
            origins[(*at, key)] = part.origin
    return Table(entries=entries)


def _is_of_file(part: Part) -> bool:
    return any(leaf.origin is None for leaf in _leaves(part))


def _leaves(part: Part) -> Iterator[Leaf]:
    if isinstance(part, Leaf):
        yield part
        return
    for inner in part.entries.values():
        yield from _leaves(inner)
