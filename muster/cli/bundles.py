"""Commands about bundles: what machines without internet are installed from."""

import asyncio
import platform
import sys
from pathlib import Path
from typing import Annotated

import typer

from muster.cli.documents import Format, text_of
from muster.cli.options import Output
from muster.cli.session import answers, screen
from muster.domain.errors import InvalidJobError

bundle = typer.Typer(help="Bundles, from which machines are installed without internet.", no_args_is_help=True)

_PYTHONS = ("3.11", "3.12", "3.13")
_ARCHITECTURES = ("x86_64", "aarch64")

BundleFile = Annotated[Path, typer.Argument(metavar="FILE", help="The bundle.")]


@bundle.command("create")
@answers
async def create(
    *,
    python: Annotated[str, typer.Option(metavar="VERSIONS", help="For machines with these.")] = ",".join(_PYTHONS),
    arch: Annotated[
        str | None, typer.Option(metavar="NAMES", help="x86_64, aarch64 or both; this machine's otherwise.")
    ] = None,
    frozen: Annotated[
        bool | None,
        typer.Option(
            help="Add programs that bring their Python along, for machines like this one that have none; where "
            "PyInstaller is installed, that is done by itself."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option(metavar="FILE", help="muster-VERSION-PLATFORMS.tar otherwise.")] = None,
    wheel: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Muster's own wheel; made of what is installed otherwise.")
    ] = None,
    find_links: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Take wheels from this directory only, not from an index.")
    ] = None,
) -> None:
    """Make a bundle: wheels with their hashes, systemd units and an installer, in one file."""
    from muster.bundle.create import BundlePlan, create_bundle  # noqa: PLC0415 - only here
    from muster.bundle.frozen import is_possible  # noqa: PLC0415
    from muster.bundle.wheels import Platform  # noqa: PLC0415

    pythons = _chosen(python, _PYTHONS, "Python")
    architectures = _chosen(arch or platform.machine(), _ARCHITECTURES, "architecture")
    plan = BundlePlan(
        platforms=[Platform(each, architecture) for architecture in architectures for each in pythons],
        frozen=is_possible() if frozen is None else frozen,
        output=output,
        wheel=wheel,
        find_links=find_links,
    )
    made = await asyncio.to_thread(create_bundle, plan, lambda text: print(text, file=sys.stderr))
    print(made)


@bundle.command("show")
@answers
async def show(file: BundleFile, *, output: Output = Format.TABLE) -> None:
    """Say what a bundle installs, and where."""
    from muster.bundle.archive import read_bundle  # noqa: PLC0415

    manifest = read_bundle(file)
    if output is not Format.TABLE:
        print(text_of(manifest, output), end="")
        return
    from muster.cli.render_tables import facts  # noqa: PLC0415 - Rich

    frozen = ", ".join(f"{each} (C library from {glibc} on)" for each, glibc in manifest.frozen.items())
    screen().print(
        facts(
            (
                ("version", manifest.version),
                ("Pythons", f"{', '.join(manifest.platforms)} (C library from {manifest.wheels_glibc} on)"),
                ("without Python", frozen),
                ("parts", ", ".join(manifest.extras)),
                ("files", str(len(manifest.files))),
            )
        )
    )


@bundle.command("verify")
@answers
async def verify(file: BundleFile) -> None:
    """See whether a bundle is whole and unchanged."""
    from muster.bundle.archive import verify_bundle  # noqa: PLC0415

    manifest = verify_bundle(file)
    print(f"{file} is whole: {len(manifest.files)} files of version {manifest.version}")


def _chosen(text: str, possible: tuple[str, ...], kind: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(filter(None, text.replace(" ", "").split(","))))
    for each in chosen:
        if each not in possible:
            raise InvalidJobError(f"there are no wheels for {kind} {each}, only for {', '.join(possible)}")
    return chosen
