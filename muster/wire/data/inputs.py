"""Inputs of jobs on the wire, and what they were found to hold."""

import re
from string import ascii_letters, digits

from muster.domain.data.digest import is_digest
from muster.domain.data.job_input import LARGEST_INPUT, LONGEST_INPUT_URL, LONGEST_LISTING, FoundInput, JobInput
from muster.domain.data.job_source import MOST_INPUT_TREES, InputTree
from muster.domain.data.pattern import InputLayout
from muster.rpc.v1 import model_pb2 as pb
from muster.wire import checks
from muster.wire.checks import WireError

LONGEST_INPUT_VERSION = 256
"""Characters of what a server calls a version of a file."""

LONGEST_ORIGIN = LONGEST_INPUT_URL + 64
"""Characters of a URL and of the name of the secret that opens it."""

_BASE64 = frozenset(f"{ascii_letters}{digits}+/=")
_BELOW = re.compile(r"[a-z0-9][a-z0-9-]{0,80}")


def input_to_wire(each: JobInput) -> pb.Input:
    """An input of a role."""
    return pb.Input(
        name=each.name,
        url=each.url,
        urls=each.urls,
        path=each.path or "",
        sha256=each.sha256,
        source=each.source,
        only=each.only,
        trees=map(_tree_to_wire, each.trees),
        secret=each.secret,
        split=each.split,
        layout="" if each.layout is InputLayout.TAIL else each.layout,
    )


def input_from_wire(message: pb.Input) -> JobInput:
    """An input of a role, not checked by the rule book yet; raises WireError for its trees and layout."""
    if len(message.trees) > MOST_INPUT_TREES:
        raise WireError("Input.trees", f"are more than {MOST_INPUT_TREES}")
    return JobInput(
        name=message.name,
        url=message.url,
        urls=tuple(message.urls),
        path=message.path or None,
        sha256=message.sha256,
        source=message.source,
        only=tuple(message.only),
        trees=tuple(map(_tree_from_wire, message.trees)),
        secret=message.secret,
        split=message.split,
        layout=checks.word(InputLayout, message.layout, "Input.layout") if message.layout else InputLayout.TAIL,
    )


def _tree_to_wire(each: InputTree) -> pb.InputTree:
    return pb.InputTree(tree=each.tree, size=each.size, below=each.below)


def _tree_from_wire(message: pb.InputTree) -> InputTree:
    if not is_digest(message.tree):
        raise WireError("InputTree.tree", "is no SHA-256")
    if message.below and _BELOW.fullmatch(message.below) is None:
        raise WireError("InputTree.below", "is no name of an execution")
    size = checks.between(message.size, 1, LARGEST_INPUT, "InputTree.size")
    return InputTree(tree=message.tree, size=size, below=message.below)


def found_input_to_wire(found: FoundInput) -> pb.FoundInput:
    """What a URL was found to hold."""
    return pb.FoundInput(
        url=found.url, size=found.size, sha256=found.sha256, version=found.version, listing=found.listing
    )


def found_input_from_wire(message: pb.FoundInput) -> FoundInput:
    """What a URL was found to hold; raises WireError."""
    if not is_digest(message.sha256):
        raise WireError("FoundInput.sha256", "is no SHA-256")
    if len(message.url) > LONGEST_ORIGIN:
        raise WireError("FoundInput.url", f"has more than {LONGEST_ORIGIN} characters")
    if len(message.version) > LONGEST_INPUT_VERSION:
        raise WireError("FoundInput.version", f"has more than {LONGEST_INPUT_VERSION} characters")
    if len(message.listing) > LONGEST_LISTING or not _BASE64.issuperset(message.listing):
        raise WireError("FoundInput.listing", f"is no Base64 of at most {LONGEST_LISTING} characters")
    return FoundInput(
        url=checks.plain(message.url, "FoundInput.url"),
        size=checks.between(message.size, 0, LARGEST_INPUT, "FoundInput.size"),
        sha256=message.sha256,
        version=checks.plain(message.version, "FoundInput.version"),
        listing=message.listing,
    )
