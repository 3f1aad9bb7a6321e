r"""Lists of objects: which objects an input was found to be, in which versions, as it counts for its whole job.

The form of a list has a JSON array for each object, on a line of its own, in the order of the bytes of the keys:

    ["imagenet/train-0.tar",1048576,"\"9a0364b9e99bb480dd25e1f0284c8555\""]

Nodes hand it on as text: that form, compressed, in Base64.
"""

import json
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from muster.domain.data.job_input import LARGEST_INPUT, LONGEST_LISTING, FoundInput
from muster.domain.data.pattern import InputLayout, NamePattern, NamePatternError, placed
from muster.domain.data.tree import MalformedTreeError, refuse_bad_content_path
from muster.domain.errors import MusterError

MOST_OBJECTS = 10_000
"""Objects that one input may be."""
LONGEST_OBJECT_VERSION = 256
"""Characters of what a store calls a version of an object."""

_LARGEST_FORM = 32 * 1024 * 1024
_FIELDS = 3


class ListingError(MusterError):
    """Objects cannot be an input, or a text is no list of objects; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredObject:
    """An object of a store in one version."""

    key: str
    size: int
    version: str
    """What the store calls the version: its `ETag`."""


@dataclass(frozen=True, slots=True)
class BucketListing:
    """The objects that an input is, in the order of their keys."""

    objects: tuple[StoredObject, ...]

    @property
    def size(self) -> int:
        """Bytes of all objects."""
        return sum(each.size for each in self.objects)

    def found(self, origin: str) -> FoundInput:
        """What is told of an input; raises ListingError where it is too much."""
        form = "".join(
            f"{json.dumps([each.key, each.size, each.version], separators=(',', ':'))}\n" for each in self.objects
        ).encode()
        text = b64encode(zlib.compress(form)).decode()
        if len(self.objects) > MOST_OBJECTS or len(text) > LONGEST_LISTING:
            raise ListingError(
                f"there are {len(self.objects)} objects of that name; {MOST_OBJECTS} with short names are the most. "
                "Take several inputs, or pack the objects into fewer"
            )
        return FoundInput(url=origin, size=self.size, sha256=sha256(form).hexdigest(), listing=text)


def read_listing(found: FoundInput) -> BucketListing:
    """The list that was told of an input; raises ListingError."""
    try:
        inflating = zlib.decompressobj()
        form = inflating.decompress(b64decode(found.listing, validate=True), _LARGEST_FORM)
        if not inflating.eof or sha256(form).hexdigest() != found.sha256:
            raise ListingError("the list of its objects is damaged")
        objects = tuple(_object(json.loads(line)) for line in form.splitlines())
    except (ValueError, zlib.error, RecursionError) as error:
        raise ListingError(f"the list of its objects cannot be read: {error}") from None
    return BucketListing(objects)


def chosen(pattern: NamePattern, found: Iterable[StoredObject]) -> BucketListing:
    """The list of objects with such a name. Raises ListingError for keys that no file can have below its input.

    Objects of no bytes that stand for a directory of another object are left out.
    """
    objects = sorted(found, key=lambda each: each.key.encode())
    above = {parent for each in objects for parent in _parents(each.key)}
    kept = [each for each in objects if each.size or each.key not in above]
    for each in kept:
        _refuse_no_path(pattern.place(each.key, InputLayout.TAIL))
    return BucketListing(tuple(kept))


def places(
    pattern: NamePattern, objects: Sequence[StoredObject], layout: InputLayout = InputLayout.TAIL
) -> dict[str, StoredObject]:
    """Objects by the path at which each lies below the directory of its input, in the order of these paths.

    Raises ListingError as above, and where two objects would lie at one path.
    """
    by_key = {each.key: each for each in objects}
    try:
        paths = placed(((pattern, key) for key in by_key), layout)
    except NamePatternError as error:
        raise ListingError(str(error)) from None
    for path in paths:
        _refuse_no_path(path)
    return {path: by_key[key] for path, key in paths.items()}


def _refuse_no_path(path: str) -> None:
    try:
        refuse_bad_content_path(path)
    except MalformedTreeError as error:
        raise ListingError(f"an object can be no file: {error}") from None


def _parents(key: str) -> Iterable[str]:
    while key := key.rpartition("/")[0]:
        yield key


def _object(said: object) -> StoredObject:
    if not isinstance(said, list) or len(said) != _FIELDS:
        raise ListingError("a line of the list of its objects is none")
    key, size, version = said
    if not (isinstance(key, str) and type(size) is int and isinstance(version, str) and 0 <= size <= LARGEST_INPUT):
        raise ListingError("a line of the list of its objects is none")
    return StoredObject(key=key, size=size, version=version)
