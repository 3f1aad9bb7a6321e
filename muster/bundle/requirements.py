"""Requirements of one platform with exact versions and hashes, from which pip installs and nothing else."""

from collections.abc import Iterable, Mapping

from muster.bundle.manifest import Wheel

PIP_NAME = "pip"
"""The distribution that installs and is not installed."""


def file_of(platform: object) -> str:
    """Where in a bundle the requirements of a platform are."""
    return f"requirements/{platform}.txt"


def pinned(platform: object, wheels: Iterable[Wheel]) -> str:
    """The text for pip: every wheel of that platform but pip itself, with its version and its hash."""
    lines = [f"# All that is installed on {platform}; pip takes nothing that has another hash."]
    lines += [
        f"{each.name}=={each.version} --hash=sha256:{each.sha256}"
        for each in sorted(wheels, key=lambda each: each.name)
        if each.name != PIP_NAME
    ]
    return "\n".join([*lines, ""])


def in_bundle(wheels: Iterable[Wheel], names: Iterable[str]) -> Mapping[str, Wheel]:
    """The wheels with these file names, by the names of their distributions."""
    wanted = set(names)
    return {each.name: each for each in wheels if each.file in wanted}
