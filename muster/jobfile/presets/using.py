"""Which presets a job file names, under `use`."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from muster.domain.fleet.policies.preset import MOST_PRESETS_USED, PresetKind
from muster.domain.quoting import did_you_mean, quote
from muster.jobfile.document import Listing, Loc, Node, Scalar, Table, kind
from muster.jobfile.errors import FieldError

USE_KEY = "use"
"""The key under which a job file names presets."""
ROLES_KEY = "roles"
"""The key under which a preset says something of single roles, by name."""


class NamedPreset(NamedTuple):
    """A preset that a job file names."""

    kind: PresetKind
    name: str
    version: int
    """0: the newest."""
    place: Loc
    """Where it is named."""


class UseError(FieldError):
    """What is wrong with a value under `use`, and where."""

    def __init__(self, place: Loc, message: str) -> None:
        super().__init__(message)
        self.place = place


def named_presets(root: Table) -> Sequence[NamedPreset]:
    """The presets that a document names, in the order in which they are joined; raises UseError."""
    said = root.entries.get(USE_KEY)
    if said is None or (isinstance(said, Scalar) and said.value is None):
        return ()
    if not isinstance(said, Table):
        raise UseError((USE_KEY,), f"must be a map like {{environment: pytorch-2.9}}, not {kind(said)}")
    for word in said.entries:
        if word not in set(PresetKind):
            raise UseError((USE_KEY, word), f"is no kind of preset{did_you_mean(word, list(PresetKind))}")
    found = [each for of in PresetKind for each in _named(of, said.entries.get(of))]
    if len(found) > MOST_PRESETS_USED:
        raise UseError((USE_KEY,), f"names {len(found)} presets; {MOST_PRESETS_USED} are the most")
    return found


def _named(of: PresetKind, said: Node | None) -> Iterator[NamedPreset]:
    place: Loc = (USE_KEY, of)
    if said is None or (isinstance(said, Scalar) and said.value is None):
        return
    if isinstance(said, Listing) and of is PresetKind.DATA:
        for number, each in enumerate(said.items):
            yield _one(of, each, (*place, number))
        return
    yield _one(of, said, place)


def _one(of: PresetKind, said: Node, place: Loc) -> NamedPreset:
    if not isinstance(said, Scalar):
        raise UseError(place, f"must be the name of a preset, not {kind(said)}")
    name, at, number = said.text.partition("@")
    if at and not (number.isascii() and number.isdecimal() and int(number[:9]) > 0):
        raise UseError(place, f"{quote(said.text)} has no number of a version after @; write it like pytorch-2.9@4")
    return NamedPreset(of, name, int(number[:9] or 0), place)
