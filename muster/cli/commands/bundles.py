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

bundle = typer.Typer(help="Bundles, from which machines are installed without internet.", no_args_is_help=True)

_PYTHONS = ("3.11", "3.12", "3.13")
_ARCHITECTURES = ("x86_64", "aarch64")

BundleFile = Annotated[Path, typer.Argument(metavar="FILE", help="The bundle.")]


@bundle.command("create")
@answers
async def create(  # noqa: PLR0913 - one for each option
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
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="A wheel of Muster's own (muster-client, muster-fleet); repeated, one of each. Made of what is "
            "installed otherwise.",
        ),
    ] = None,
    find_links: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Take wheels from this directory only, not from an index.")
    ] = None,
    sign_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Sign it with this private key, which `muster bundle keygen` has made."),
    ] = None,
) -> None:
    """Make a bundle: wheels with their hashes, systemd units and an installer, in one file.

    Example: muster bundle create --python 3.11 --sign-key release.key
    """
    from muster.bundle.create import BundlePlan, create_bundle  # noqa: PLC0415 - only here
    from muster.bundle.frozen import is_possible  # noqa: PLC0415
    from muster.bundle.wheels import Platform  # noqa: PLC0415

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


@bundle.command("upload")
@answers
async def upload(
    context: typer.Context,
    file: BundleFile,
    *,
    name: Annotated[str, typer.Option(help="As the coordinator shall call it; as the file is called otherwise.")] = "",
    signer: Signers = None,
) -> None:
    """Have the coordinator keep a bundle, in place of one of that name, for machines that reach nothing else."""
    from muster.bundle.signature import checked_bundle, signers_in  # noqa: PLC0415 - only here

    await asyncio.to_thread(checked_bundle, file, signers_in(signer or ()))
    size = file.stat().st_size
    with _progress(f"uploads {file.name}") as tell:
        async with session_of(context).client() as client:
            kept = await client.bundles.upload(file, name, lambda sent: tell(sent, size))
    say(f"the coordinator keeps {kept.name}, sha256:{kept.sha256}; {_signed(kept.signer)}")


@bundle.command("list")
@answers
async def list_bundles(context: typer.Context, *, output: Output = Format.TABLE) -> None:
    """List the bundles that the coordinator keeps, the newest version first."""
    async with session_of(context).client() as client:
        found = await client.bundles.list()
    if output is not Format.TABLE:
        say_lines(text_of(found, output))
        return
    from muster.cli.output.tables import listing  # noqa: PLC0415 - Rich

    rows = (
        (each.name, each.version, f"{each.size / 1e6:.1f} MB", each.signer[:23] or "-", ", ".join(each.platforms))
        for each in found
    )
    screen().print(listing(("NAME", "VERSION", "SIZE", "SIGNED BY", "PLATFORMS"), rows))


@bundle.command("get")
@answers
async def get(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The newest version otherwise.")] = "",
    *,
    directory: Annotated[Path, typer.Option("--to", metavar="DIR", help="Where to.")] = Path(),
    signer: Signers = None,
) -> None:
    """Fetch a bundle from the coordinator; hash and signature are checked."""
    from muster.bundle.manifest import InvalidBundleError  # noqa: PLC0415 - only here
    from muster.bundle.signature import checked_bundle, signers_in  # noqa: PLC0415

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


@bundle.command("remove")
@answers
async def remove(context: typer.Context, name: Annotated[str, typer.Argument(metavar="NAME")]) -> None:
    """Have the coordinator keep a bundle no longer."""
    async with session_of(context).client() as client:
        await client.bundles.remove(name)
    say(f"{name} is removed")


@bundle.command("show")
@answers
async def show(file: BundleFile, *, output: Output = Format.TABLE) -> None:
    """Say what a bundle installs, and where."""
    from muster.bundle.archive import read_bundle  # noqa: PLC0415
    from muster.bundle.signature import signer_of  # noqa: PLC0415

    manifest, signer = read_bundle(file), signer_of(file)
    if output is not Format.TABLE:
        say_lines(text_of(manifest, output))
        return
    from muster.cli.output.tables import facts  # noqa: PLC0415 - Rich

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


@bundle.command("verify")
@answers
async def verify(file: BundleFile, *, signer: Signers = None) -> None:
    """See whether a bundle is whole and unchanged, and who signed it.

    Example: muster bundle verify muster-0.1.0-cp311-x86_64.tar --signer release.key.pub
    """
    from muster.bundle.signature import checked_bundle, signers_in  # noqa: PLC0415

    found = await asyncio.to_thread(checked_bundle, file, signers_in(signer or ()))
    files, version = len(found.manifest.files), found.manifest.version
    say(f"{file} is whole: {files} files of version {version}; {_signed(found.signer)}")
    if not signer:
        say("who made it is not checked: say --signer sha256:… or a file with the public key", err=True)


@bundle.command("keygen")
@answers
async def keygen(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Where the private key goes; FILE.pub gets the public half.")
    ],
) -> None:
    """Make a key that signs bundles, and show the fingerprint by which others name it.

    Example: muster bundle keygen release.key
    """
    from muster.trust.files import write_private  # noqa: PLC0415 - cryptography
    from muster.trust.signing import key_fingerprint, new_signing_key, public_half  # noqa: PLC0415

    public = file.with_name(f"{file.name}.pub")
    for each in (file, public):
        if await asyncio.to_thread(each.exists):
            raise ConflictError(f"{each} is there already; name another file, as a key that is lost signs no more")
    private = new_signing_key()
    write_private(file, private)
    await asyncio.to_thread(public.write_bytes, public_half(private))
    say(f"{file} signs; keep it where only those who release bundles can read it", err=True)
    say(key_fingerprint(public_half(private)))


@bundle.command("sign")
@answers
async def sign(
    file: BundleFile,
    *,
    sign_key: Annotated[Path, typer.Option(metavar="FILE", help="The private key.")],
) -> None:
    """Sign a bundle that is there already, in place of whoever signed it before.

    Example: muster bundle sign muster-0.1.0-cp311-x86_64.tar --sign-key release.key
    """
    from muster.bundle.signature import sign_bundle  # noqa: PLC0415 - cryptography

    say(f"{file} is {_signed(await asyncio.to_thread(sign_bundle, file, sign_key))}")


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
        from muster.bootstrap.installation.delivery import fetched, own_cache  # noqa: PLC0415 - gRPC

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
    from rich.progress import DownloadColumn, Progress, TextColumn, TransferSpeedColumn  # noqa: PLC0415 - Rich

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
