"""How a bundle is made."""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory

from muster.bundle import frozen, sbom
from muster.bundle.archive import INSTALLER, sha256, write_bundle
from muster.bundle.frozen import FrozenPrograms
from muster.bundle.manifest import BundleManifest, read_manifest
from muster.bundle.own_wheel import CLIENT, FLEET, build_wheels, checked_wheels, extras_of, version_of
from muster.bundle.packages import edges, package_in
from muster.bundle.requirements import file_of, in_bundle, pinned
from muster.bundle.sbom import FrozenPart, Materials, WheelPart
from muster.bundle.signature import signature_with
from muster.bundle.wheels import GLIBC, Platform, download
from muster.daemon.own_programs import is_frozen
from muster.domain.errors import ExhaustedError, MusterError

PIP = "pip>=24"
"""Goes along, as not every Python has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundlePlan:
    """What to put into a bundle."""

    platforms: Sequence[Platform]
    frozen: bool = False
    """Also programs that bring their Python along, for machines like this one."""
    output: Path | None = None
    """None: in this directory, under a name that says what it is."""
    wheels: Sequence[Path] = ()
    """Our own, one of each distribution; none: made of what is installed here."""
    find_links: Path | None = None
    """Where the wheels of others are; None: where pip looks."""
    sign_key: Path | None = None
    """File with the private key that signs; None: the bundle is not signed."""


def create_bundle(plan: BundlePlan, tell: Callable[[str], None]) -> Path:
    """Make it, and tell of each step; raises MusterError, and then leaves nothing behind."""
    if is_frozen():
        raise MusterError("a Muster that brings its Python along makes no bundles; use one that pip has installed")
    if not plan.platforms:
        raise MusterError("a bundle needs at least one Python and one architecture")
    if plan.sign_key is not None:
        signature_with(plan.sign_key, b"")  # before minutes of work, as the key may be none
    place = plan.output.absolute().parent if plan.output else Path.cwd()
    try:
        with TemporaryDirectory(prefix=".muster-bundle-", dir=place) as directory:
            return _create(plan, Path(directory), place, tell)
    except OSError as error:
        raise ExhaustedError(f"the bundle cannot be made in {place}: {error.strerror}") from error


def _create(plan: BundlePlan, work: Path, place: Path, tell: Callable[[str], None]) -> Path:
    wheels = work / "wheels"
    wheels.mkdir()
    own = _own_wheels(plan, wheels)
    version, extras = version_of(own), tuple(sorted({extra for each in own for extra in extras_of(each)}))
    wanted = [_with_extras(each) for each in own]
    for each in own:
        tell(f"{each.name}: {_size(each)}")
    installed: dict[Platform, tuple[str, ...]] = {}
    for platform in plan.platforms:
        arrived = work / str(platform)
        download(arrived, platform, [*wanted, PIP], plan.find_links)
        before = _total(wheels)
        installed[platform] = tuple(_gathered(arrived, wheels))
        count, size = (now - then for now, then in zip(_total(wheels), before, strict=True))
        tell(f"{platform}: {count} wheels more, {size / 1e6:.1f} MB")
    found = {f"wheels/{path.name}": path for path in sorted(wheels.iterdir())}
    programs = None
    if plan.frozen:
        programs = frozen.build(own, work / "frozen")
        found[f"frozen/{programs.archive.name}"] = programs.archive
        tell(f"{programs.archive.name}: {_size(programs.archive)}, needs a C library from {programs.glibc} on")
    found |= dict(_own_files())
    manifest = BundleManifest(
        version=version,
        platforms=tuple(map(str, plan.platforms)),
        extras=extras,
        wheels_glibc=GLIBC,
        frozen={} if programs is None else {programs.architecture: programs.glibc},
        files={name: _digest(path) for name, path in found.items()},
    )
    for name, content in _documents(manifest, found, installed, programs):
        found[name] = work / name.replace("/", "-")
        found[name].write_bytes(content)
        manifest = replace(manifest, files={**manifest.files, name: hashlib.sha256(content).hexdigest()})
    output = plan.output.absolute() if plan.output else place / f"muster-{version}-{_platforms(plan)}.tar"
    manifest = read_manifest(manifest.written())
    signature = None if plan.sign_key is None else signature_with(plan.sign_key, manifest.written())
    write_bundle(output, manifest, found, signature)
    return output


def _with_extras(wheel: Path) -> str:
    extras = extras_of(wheel)
    return f"{wheel}[{','.join(extras)}]" if extras else str(wheel)


def _gathered(arrived: Path, wheels: Path) -> Iterator[str]:
    """Names in the bundle of the wheels of one platform, which come to lie with those of the others."""
    for path in sorted(arrived.iterdir()):
        there = wheels / path.name
        if not there.exists():
            path.rename(there)
        elif _digest(path) != _digest(there):
            raise MusterError(f"{path.name} was fetched twice and is not the same; ask who keeps that package index")
        yield f"wheels/{path.name}"


def _documents(
    manifest: BundleManifest,
    found: Mapping[str, Path],
    installed: Mapping[Platform, Sequence[str]],
    programs: FrozenPrograms | None,
) -> Iterator[tuple[str, bytes]]:
    """What is written about the contents: requirements for each platform, and the bill of materials."""
    requirements = {}
    for platform, names in installed.items():
        text = pinned(platform, in_bundle(manifest.wheels, names).values())
        requirements[file_of(platform)] = text.encode()
    yield from requirements.items()
    parts = {
        each.file: WheelPart(file=each.file, sha256=each.sha256, package=package_in(found[each.file]))
        for each in manifest.wheels
    }
    others = {name: digest for name, digest in manifest.files.items() if not name.startswith(("wheels/", "frozen/"))}
    others |= {name: hashlib.sha256(content).hexdigest() for name, content in requirements.items()}
    materials = Materials(
        version=manifest.version,
        wheels=tuple(parts.values()),
        edges=_edges(manifest, parts, installed),
        frozen=() if programs is None else (_frozen_part(programs, manifest),),
        files=others,
    )
    yield sbom.BILL_NAME, sbom.bill_of(materials)


def _edges(
    manifest: BundleManifest, parts: Mapping[str, WheelPart], installed: Mapping[Platform, Sequence[str]]
) -> Iterator[tuple[str, str]]:
    roots = {each.name: frozenset(manifest.extras) for each in (CLIENT, FLEET)}
    for platform, names in installed.items():
        wheels = in_bundle(manifest.wheels, names)
        packages = {name: parts[wheel.file].package for name, wheel in wheels.items()}
        for one, other in edges(packages, platform, roots):
            yield wheels[one].file, wheels[other].file


def _frozen_part(programs: FrozenPrograms, manifest: BundleManifest) -> FrozenPart:
    file = f"frozen/{programs.archive.name}"
    return FrozenPart(
        file=file,
        sha256=manifest.files[file],
        python=programs.python,
        maker=programs.maker,
        packages=programs.packages,
        libraries=programs.libraries,
    )


def _own_wheels(plan: BundlePlan, wheels: Path) -> Sequence[Path]:
    if not plan.wheels:
        return build_wheels(wheels)
    return [Path(shutil.copy(each, wheels)) for each in checked_wheels(plan.wheels)]


def _own_files() -> Iterator[tuple[str, Path]]:
    """Installer and units, as they lie in this package."""
    here = Path(str(files("muster.bundle")))
    yield INSTALLER, here / INSTALLER
    for unit in sorted((here / "units").glob("*.service")):
        yield f"units/{unit.name}", unit


def _platforms(plan: BundlePlan) -> str:
    pythons = dict.fromkeys(f"cp{each.python.replace('.', '')}" for each in plan.platforms)
    architectures = dict.fromkeys(each.architecture for each in plan.platforms)
    return f"{'.'.join(pythons)}-{'.'.join(architectures)}"


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return sha256(file)


def _total(directory: Path) -> tuple[int, int]:
    sizes = [path.stat().st_size for path in directory.iterdir()]
    return len(sizes), sum(sizes)


def _size(path: Path) -> str:
    return f"{path.stat().st_size / 1e6:.1f} MB"
