"""The software bill of materials of a bundle, as CycloneDX 1.6 in JSON; the same for the same bundle.

https://cyclonedx.org/docs/1.6/json/ says what each key means.
"""

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from muster.bundle.packages import Package

BILL_NAME = "sbom.cdx.json"
"""Name of the bill in the bundle."""
LARGEST_BILL = 16 << 20
"""Bytes of one."""

_SCHEMA = "http://cyclonedx.org/schema/bom-1.6.schema.json"
_SPACE = uuid.UUID("5f2c0f52-5f6e-4a55-9d0c-2f2f6e1c7a10")
"""Name space of the serial numbers."""
_PRODUCT = "muster"
_OWN = frozenset({"muster-client", "muster-fleet"})
"""Our distributions; they come from no index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WheelPart:
    """A wheel that is in the bundle."""

    file: str
    """Name of the file in the bundle."""
    sha256: str
    package: Package


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryPart:
    """A shared library of the system that a frozen program brings along."""

    name: str
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenPart:
    """Programs that bring their Python along, and what they were made of."""

    file: str
    sha256: str
    python: str
    """Version of the Python that they bring."""
    maker: str
    """Version of PyInstaller."""
    packages: Sequence[Package]
    libraries: Sequence[LibraryPart] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Materials:
    """Everything that is in a bundle."""

    version: str
    wheels: Sequence[WheelPart]
    edges: Iterable[tuple[str, str]] = ()
    """Which wheel requires which, by their files."""
    frozen: Sequence[FrozenPart] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    """All other files with their SHA-256: installer, units, requirements."""


def bill_of(materials: Materials) -> bytes:
    """The document."""
    components = [
        *map(_wheel, sorted(materials.wheels, key=lambda each: each.file)),
        *(_frozen(each, materials.version) for each in sorted(materials.frozen, key=lambda each: each.file)),
        *(_file(name, sha256) for name, sha256 in sorted(materials.files.items())),
    ]
    bundle = f"bundle:{_PRODUCT}@{materials.version}"
    requires: dict[str, set[str]] = {each.file: set() for each in materials.wheels}
    for one, other in materials.edges:
        requires[one].add(other)
    needed = set().union(*requires.values())
    requires[bundle] = {each["bom-ref"] for each in components} - needed
    document: dict[str, Any] = {
        "$schema": _SCHEMA,
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "tools": {"components": [{"type": "application", "name": _PRODUCT, "version": materials.version}]},
            "component": {
                "type": "application",
                "bom-ref": bundle,
                "name": "muster-bundle",
                "version": materials.version,
                "licenses": [{"expression": "Apache-2.0", "acknowledgement": "declared"}],
            },
        },
        "components": components,
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(others)} if others else {"ref": ref}
            for ref, others in sorted(requires.items())
        ],
    }
    # The number follows from the content, so that equal bundles have equal documents.
    document["serialNumber"] = uuid.uuid5(_SPACE, json.dumps(document, sort_keys=True)).urn
    return (json.dumps(document, indent=2, sort_keys=True) + "\n").encode()


def _wheel(part: WheelPart) -> dict[str, Any]:
    return {
        **_package(part.package, part.file, f"?file_name={_quoted(part.file.rpartition('/')[2])}"),
        "hashes": _hashes(part.sha256),
    }


def _frozen(part: FrozenPart, version: str) -> dict[str, Any]:
    inside: list[dict[str, Any]] = [
        {
            "type": "platform",
            "bom-ref": f"{part.file}#python",
            "name": "cpython",
            "version": part.python,
            "purl": f"pkg:generic/python@{_quoted(part.python)}",
        }
    ]
    packages = sorted(part.packages, key=lambda each: each.name)
    inside += [_package(each, f"{part.file}#{each.name}") for each in packages]
    inside += [
        {
            "type": "library",
            "bom-ref": f"{part.file}#lib/{each.name}",
            "name": each.name,
            "hashes": _hashes(each.sha256),
        }
        for each in sorted(part.libraries, key=lambda each: each.name)
    ]
    return {
        "type": "application",
        "bom-ref": part.file,
        "name": part.file,
        "version": version,
        "hashes": _hashes(part.sha256),
        "properties": [{"name": "muster:made-by", "value": f"PyInstaller {part.maker}"}],
        "components": inside,
    }


def _file(name: str, sha256: str) -> dict[str, Any]:
    return {"type": "file", "bom-ref": name, "name": name, "hashes": _hashes(sha256)}


def _package(package: Package, ref: str, qualifiers: str = "") -> dict[str, Any]:
    """A component; what is ours comes from no index."""
    ours = package.name in _OWN
    kind = "generic" if ours else "pypi"
    found: dict[str, Any] = {
        "type": "application" if ours else "library",
        "bom-ref": ref,
        "name": package.name,
        "version": package.version,
        "purl": f"pkg:{kind}/{_quoted(package.name)}@{_quoted(package.version)}{qualifiers}",
    }
    licences = _licences(package)
    return found | {"licenses": licences} if licences else found


def _licences(package: Package) -> list[dict[str, Any]]:
    if package.expression:
        return [{"expression": package.expression, "acknowledgement": "declared"}]
    return [{"license": {"name": name, "acknowledgement": "declared"}} for name in dict.fromkeys(package.licences)]


def _hashes(sha256: str) -> list[dict[str, str]]:
    return [{"alg": "SHA-256", "content": sha256}]


def _quoted(text: str) -> str:
    return quote(text, safe="")
