"""The signature of a bundle: who made it, and whether that signer is believed."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from muster.bundle.archive import SignatureFiles, read_head, resigned, verify_bundle
from muster.bundle.manifest import BundleManifest, InvalidBundleError
from muster.domain.errors import InvalidJobError, MusterError
from muster.trust.files import read_secret
from muster.trust.signing import SignatureError, check_signature, key_fingerprint, public_half, signature_over

_FINGERPRINT = re.compile(r"sha256:[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedBundle:
    """A bundle that is whole and unchanged."""

    manifest: BundleManifest
    signer: str
    """Fingerprint of the key that signed it; empty: nobody did."""


def checked_bundle(file: Path, signers: Collection[str] = ()) -> CheckedBundle:
    """What a bundle says of itself; raises InvalidBundleError unless it is whole and its signature fits.

    With `signers`, fingerprints of keys, it must be signed by one of them.
    """
    signer = signer_of(file)
    if signers and not signer:
        raise InvalidBundleError(f"{file} is not signed, and has to be by {' or '.join(sorted(signers))}")
    if signers and signer not in signers:
        raise InvalidBundleError(f"{file} is signed by {signer}, and has to be by {' or '.join(sorted(signers))}")
    return CheckedBundle(manifest=verify_bundle(file), signer=signer)


def signer_of(file: Path) -> str:
    """Fingerprint of the key that signed the manifest of a bundle; empty where there is no signature.

    Raises InvalidBundleError where the signature does not fit. The other files are not looked at.
    """
    head = read_head(file)
    if head.signature is None:
        return ""
    try:
        check_signature(head.signature.public, head.text, head.signature.signature)
        return key_fingerprint(head.signature.public)
    except SignatureError as error:
        raise InvalidBundleError(f"{file}: {error}; fetch the bundle again, and ask who made it") from error


def sign_bundle(file: Path, key: Path) -> str:
    """Sign a bundle in place, instead of whoever signed it before; the fingerprint of the key."""
    verify_bundle(file)
    files = signature_with(key, read_head(file).text)
    resigned(file, files)
    return key_fingerprint(files.public)


def signature_with(key: Path, text: bytes) -> SignatureFiles:
    """The signature over the text of a manifest, by the private key in a file."""
    private = read_secret(key).encode() + b"\n"
    return SignatureFiles(signature=signature_over(private, text), public=public_half(private))


def signers_in(words: Iterable[str]) -> frozenset[str]:
    """Fingerprints out of what a person says: `sha256:…`, or a file with a public key."""
    return frozenset(map(_signer, words))


def _signer(word: str) -> str:
    if word.startswith("sha256:"):
        if not _FINGERPRINT.fullmatch(word):
            raise InvalidJobError(
                f"{word!r} is no fingerprint like sha256: and 64 digits; `muster bundles keygen` shows it"
            )
        return word
    try:
        return key_fingerprint(Path(word).read_bytes())
    except OSError as error:
        raise MusterError(f"cannot read the public key {word}: {error.strerror}") from error
    except SignatureError as error:
        raise InvalidJobError(f"{word}: {error}") from error
