"""Commands about bundles: what machines without internet are installed from."""

import asyncio
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from muster.cli.context import answers, session_of
from muster.cli.options import Output, Signers
from muster.cli.output.documents import Format, text_of
from muster.cli.output.screen import say, say_lines, screen
from muster.domain.errors import ConflictError, InvalidJobError, UnknownNameError

bundles = typer.Typer(
    help="""Make, keep and check bundles, from which machines are installed.

Examples:
  muster bundles create
  muster bundles upload muster-0.1.0-cp311-x86_64.tar
""",
    no_args_is_help=True,
)

_PYTHONS = ("3.11", "3.12", "3.13")
_ARCHITECTURES = ("x86_64", "aarch64")

BundleFile = Annotated[Path, typer.Argument(metavar="FILE", help="File of the bundle.")]


@bundles.command("create")
@answers
async def create(
    *,
    python: Annotated[
        str, typer.Option(metavar="VERSIONS", help="Versions of Python that machines may have.")
    ] = ",".join(_PYTHONS),
    arch: Annotated[
        str | None,
        typer.Option(
            metavar="NAMES", help="Architectures of machines: x86_64, aarch64 or both (default: that of this machine)."
        ),
    ] = None,
    frozen: Annotated[
        bool | None,
        typer.Option(
            help="Add programs that bring their Python along, for machines without one (default: where PyInstaller is "
            "installed)."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File to write (default: muster-VERSION-PLATFORMS.tar).")
    ] = None,
    wheel: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Wheel of Muster's own, given once for each distribution (default: made of what is installed).",
        ),
    ] = None,
    find_links: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Directory to take wheels from, in place of a package index.")
    ] = None,
    sign_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Private key that signs the bundle, from `muster bundles keygen`."),
    ] = None,
) -> None:
    """Make a bundle: one file with all that an installation needs.

    Wheels with their hashes, systemd units and an installer are in it.

    Examples:
      muster bundles create
      muster bundles create --python 3.11 --sign-key release.key
    """
    from muster.bundle.create import BundlePlan, create_bundle
    from muster.bundle.frozen import is_possible
    from muster.bundle.wheels import Platform

    pythons = _chosen(python, _PYTHONS, "Python")
    architectures = _chosen(arch or platform.machine(), _ARCHITECTURES, "architecture")
    plan = BundlePlan(
        platforms=[Platform(each, architecture) for architecture in architectures for each in pythons],
        frozen=is_possible() if frozen is None else frozen,
        output=output,
        wheels=wheel or (),
        find_links=find_links,
        sign_key=sign_key,
    )
    made = await asyncio.to_thread(create_bundle, plan, lambda text: say(text, err=True))
    say(str(made))


@bundles.command("upload")
@answers
async def upload(
    context: typer.Context,
    file: BundleFile,
    *,
    name: Annotated[
        str, typer.Option(help="Name that the coordinator gives the bundle (default: that of the file).")
    ] = "",
    signer: Signers = None,
) -> None:
    """Give the coordinator a bundle to keep.

    It replaces a bundle of the same name. Machines that reach nothing else are installed from it.

    Examples:
      muster bundles upload muster-0.1.0-cp311-x86_64.tar
      muster bundles upload muster-0.1.0-cp311-x86_64.tar --name stable
    """
    from muster.bundle.signature import checked_bundle, signers_in

    await asyncio.to_thread(checked_bundle, file, signers_in(signer or ()))
    size = file.stat().st_size
    with _progress(f"uploads {file.name}") as tell:
        async with session_of(context).client() as client:
            kept = await client.bundles.upload(file, name, lambda sent: tell(sent, size))
    say(f"the coordinator keeps {kept.name}, sha256:{kept.sha256}; {_signed(kept.signer)}")


@bundles.command("list")
@answers
async def list_bundles(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List the bundles that the coordinator keeps, newest first.

    Examples:
      muster bundles list
      muster bundles list -o json
    """
    async with session_of(context).client() as client:
        found = await client.bundles.list()
    if not output.for_people:
        say_lines(text_of(found, output))
        return
    from muster.cli.output.plain.columns import Column
    from muster.cli.output.tables import listing

    rows = (
        (each.name, each.version, f"{each.size / 1e6:.1f} MB", each.signer[:23] or "-", ", ".join(each.platforms))
        for each in found
    )
    signed, platforms = Column("SIGNED BY", least=10), Column("PLATFORMS", least=10)
    columns = (Column("NAME", least=16), "VERSION", ">SIZE", signed, platforms)
    screen(whole=output is Format.WIDE).print(listing(columns, rows))


@bundles.command("get")
@answers
async def get(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the bundle (default: the newest version).")] = "",
    *,
    directory: Annotated[
        Path, typer.Option("--to", metavar="DIR", help="Directory to write it to (default: this one).")
    ] = Path(),
    signer: Signers = None,
) -> None:
    """Fetch a bundle from the coordinator, and check it.

    Examples:
      muster bundles get
      muster bundles get muster-0.1.0-cp311-x86_64.tar --to /srv
    """
    from muster.bundle.manifest import InvalidBundleError
    from muster.bundle.signature import checked_bundle, signers_in

    believed = signers_in(signer or ())
    with _progress("downloads") as tell:
        async with session_of(context).client() as client:
            believed = believed or await client.bundles.signers()
            _, path = await client.bundles.download(directory, name, tell)
    try:
        found = await asyncio.to_thread(checked_bundle, path, believed)
    except InvalidBundleError:
        path.unlink(missing_ok=True)
        raise
    say(_signed(found.signer), err=True)
    say(str(path))


@bundles.command("remove")
@answers
async def remove(
    context: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the bundle.")]
) -> None:
    """Remove a bundle from the coordinator.

    Examples:
      muster bundles remove muster-0.1.0-cp311-x86_64.tar
      muster bundles list; muster bundles remove stable
    """
    async with session_of(context).client() as client:
        await client.bundles.remove(name)
    say(f"{name} is removed")


@bundles.command("show")
@answers
async def show(file: BundleFile, *, output: Output = Format.TABLE) -> None:
    """Show what a bundle installs, and where.

    Examples:
      muster bundles show muster-0.1.0-cp311-x86_64.tar
      muster bundles show muster-0.1.0-cp311-x86_64.tar -o json
    """
    from muster.bundle.archive import read_bundle
    from muster.bundle.signature import signer_of

    manifest, signer = read_bundle(file), signer_of(file)
    if not output.for_people:
        say_lines(text_of(manifest, output))
        return
    from muster.cli.output.tables import facts

    frozen = ", ".join(f"{each} (C library from {glibc} on)" for each, glibc in manifest.frozen.items())
    screen().print(
        facts(
            (
                ("version", manifest.version),
                ("Pythons", f"{', '.join(manifest.platforms)} (C library from {manifest.wheels_glibc} on)"),
                ("without Python", frozen),
                ("parts", ", ".join(manifest.extras)),
                ("wheels", str(len(manifest.wheels))),
                ("signed by", signer or "nobody"),
                ("files", str(len(manifest.files))),
            )
        )
    )


@bundles.command("verify")
@answers
async def verify(file: BundleFile, *, signer: Signers = None) -> None:
    """Check that a bundle is whole and unchanged, and who signed it.

    Examples:
      muster bundles verify muster-0.1.0-cp311-x86_64.tar
      muster bundles verify muster-0.1.0-cp311-x86_64.tar --signer release.key.pub
    """
    from muster.bundle.signature import checked_bundle, signers_in

    found = await asyncio.to_thread(checked_bundle, file, signers_in(signer or ()))
    files, version = len(found.manifest.files), found.manifest.version
    say(f"{file} is whole: {files} files of version {version}; {_signed(found.signer)}")
    if not signer:
        say("who made it is not checked: say --signer sha256:… or a file with the public key", err=True)


@bundles.command("keygen")
@answers
async def keygen(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File for the private key; FILE.pub gets the public half.")
    ],
) -> None:
    """Make a key that signs bundles, and print its fingerprint.

    Examples:
      muster bundles keygen release.key
      muster bundles keygen ~/keys/release.key
    """
    from muster.trust.files import write_private
    from muster.trust.signing import key_fingerprint, new_signing_key, public_half

    public = file.with_name(f"{file.name}.pub")
    for each in (file, public):
        if await asyncio.to_thread(each.exists):
            raise ConflictError(f"{each} is there already; name another file, as a key that is lost signs no more")
    private = new_signing_key()
    write_private(file, private)
    await asyncio.to_thread(public.write_bytes, public_half(private))
    say(f"{file} signs; keep it where only those who release bundles can read it", err=True)
    say(key_fingerprint(public_half(private)))


@bundles.command("sign")
@answers
async def sign(
    file: BundleFile,
    *,
    sign_key: Annotated[Path, typer.Option(metavar="FILE", help="Private key that signs.")],
) -> None:
    """Sign a bundle that is there already, in place of who signed it.

    Examples:
      muster bundles sign muster-0.1.0-cp311-x86_64.tar --sign-key release.key
      muster bundles sign muster.tar --sign-key ~/keys/release.key
    """
    from muster.bundle.signature import sign_bundle

    say(f"{file} is {_signed(await asyncio.to_thread(sign_bundle, file, sign_key))}")


@bundles.command("sbom")
@answers
async def sbom(
    context: typer.Context,
    which: Annotated[
        str,
        typer.Argument(
            metavar="FILE|NAME|VERSION", help="File of a bundle, or name or version of one that the coordinator keeps."
        ),
    ],
    *,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="File to write (default: stdout).")
    ] = None,
) -> None:
    """Write the bill of materials of a bundle, as CycloneDX 1.6.

    It has every package with version, hash and licence.

    Examples:
      muster bundles sbom muster-0.1.0-cp311-x86_64.tar
      muster bundles sbom stable -o muster.cdx.json
    """
    from muster.bundle.archive import read_part, replaced
    from muster.bundle.sbom import BILL_NAME, LARGEST_BILL

    file = Path(which)
    if not await asyncio.to_thread(file.is_file):
        if file.suffix == ".tar" and file.parent != Path():
            raise UnknownNameError(f"there is no file {which}")
        from muster.bootstrap.installation.delivery import fetched, own_cache

        async with session_of(context).client() as client:
            file = (await fetched(client, own_cache(), which)).file
    document = await asyncio.to_thread(read_part, file, BILL_NAME, LARGEST_BILL)
    if output is None:
        say_lines(document.decode())
        return
    with replaced(output) as target:
        target.write(document)
    say(str(output))


def _signed(signer: str) -> str:
    return f"signed by {signer}" if signer else "signed by nobody"


@contextmanager
def _progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """A line for people who look on, to be told how many bytes of how many are done."""
    if not sys.stderr.isatty():
        yield lambda _done, _all: None
        return
    from rich.progress import DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    named = TextColumn("{task.description}", markup=False)
    with Progress(named, DownloadColumn(), TransferSpeedColumn(), console=screen(err=True)) as shown:
        line = shown.add_task(what)
        yield lambda done, size: shown.update(line, completed=done, total=size)


def _chosen(text: str, possible: tuple[str, ...], kind: str) -> tuple[str, ...]:
    chosen = tuple(dict.fromkeys(filter(None, text.replace(" ", "").split(","))))
    for each in chosen:
        if each not in possible:
            raise InvalidJobError(f"there are no wheels for {kind} {each}, only for {', '.join(possible)}")
    return chosen
