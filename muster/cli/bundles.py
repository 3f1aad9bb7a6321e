"""Commands about bundles: what machines without internet are installed from."""

import asyncio
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from muster.cli.documents import Format, text_of
from muster.cli.options import Output
from muster.cli.session import answers, screen, session_of
from muster.domain.errors import InvalidJobError, UnknownNameError

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


@bundle.command("upload")
@answers
async def upload(
    context: typer.Context,
    file: BundleFile,
    *,
    name: Annotated[str, typer.Option(help="As the coordinator shall call it; as the file is called otherwise.")] = "",
) -> None:
    """Have the coordinator keep a bundle, in place of one of that name, for machines that reach nothing else."""
    from muster.bundle.archive import verify_bundle  # noqa: PLC0415 - only here

    await asyncio.to_thread(verify_bundle, file)
    size = file.stat().st_size
    with _progress(f"uploads {file.name}") as tell:
        async with session_of(context).client() as client:
            kept = await client.bundles.upload(file, name, lambda sent: tell(sent, size))
    print(f"the coordinator keeps {kept.name}, sha256:{kept.sha256}")


@bundle.command("list")
@answers
async def list_bundles(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List the bundles that the coordinator keeps, the newest version first."""
    async with session_of(context).client() as client:
        found = await client.bundles.all()
    if output is not Format.TABLE:
        print(text_of(found, output), end="")
        return
    from muster.cli.render_tables import listing  # noqa: PLC0415 - Rich

    rows = ((each.name, each.version, f"{each.size / 1e6:.1f} MB", ", ".join(each.platforms)) for each in found)
    screen().print(listing(("NAME", "VERSION", "SIZE", "PLATFORMS"), rows))


@bundle.command("get")
@answers
async def get(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The newest version otherwise.")] = "",
    *,
    directory: Annotated[Path, typer.Option("--to", metavar="DIR", help="Where to.")] = Path(),
) -> None:
    """Fetch a bundle from the coordinator; the hash is checked."""
    with _progress("downloads") as tell:
        async with session_of(context).client() as client:
            _, path = await client.bundles.download(directory, name, tell)
    print(path)


@bundle.command("remove")
@answers
async def remove(context: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Have the coordinator keep a bundle no longer."""
    async with session_of(context).client() as client:
        await client.bundles.remove(name)
    print(f"{name} is removed")


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


@bundle.command("sbom")
@answers
async def sbom(
    context: typer.Context,
    which: Annotated[
        str,
        typer.Argument(
            metavar="FILE|NAME|VERSION", help="A bundle here, or the name or version of one that the coordinator keeps."
        ),
    ],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write it; on the screen otherwise.")
    ] = None,
) -> None:
    """Write the bill of materials of a bundle: every package with version, hash and licence, as CycloneDX 1.6.

    Example: muster bundle sbom muster-0.1.0-cp311-x86_64.tar -o muster.cdx.json
    """
    from muster.bundle.archive import read_part, replaced  # noqa: PLC0415 - only here
    from muster.bundle.sbom import BILL_NAME, LARGEST_BILL  # noqa: PLC0415

    file = Path(which)
    if not await asyncio.to_thread(file.is_file):
        if file.suffix == ".tar" and file.parent != Path():
            raise UnknownNameError(f"there is no file {which}")
        from muster.bootstrap.parcel import fetched, own_cache  # noqa: PLC0415 - gRPC

        async with session_of(context).client() as client:
            file = (await fetched(client, own_cache(), which)).file
    document = await asyncio.to_thread(read_part, file, BILL_NAME, LARGEST_BILL)
    if output is None:
        print(document.decode(), end="")
        return
    with replaced(output) as target:
        target.write(document)
    print(output)


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A line for people who look on, to be told how many bytes of how many are done."""
    if not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    from rich.progress import DownloadColumn, Progress, TransferSpeedColumn  # noqa: PLC0415 - Rich

    with Progress("{task.description}", DownloadColumn(), TransferSpeedColumn(), console=screen(err=True)) as shown:
        line = shown.add_task(what)
        yield lambda done, size: shown.update(line, completed=done, total=size)


def _chosen(text: str, possible: tuple[str, ...], kind: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(filter(None, text.replace(" ", "").split(","))))
    for each in chosen:
        if each not in possible:
            raise InvalidJobError(f"there are no wheels for {kind} {each}, only for {', '.join(possible)}")
    return chosen
