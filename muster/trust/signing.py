"""Signatures over documents: ECDSA with P-256 and SHA-256, which every openssl that is still in use can check.

Signatures are DER, keys PEM. A key is named by the SHA-256 of its public half (SubjectPublicKeyInfo in DER).
"""

import hashlib

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from muster.domain.errors import MusterError

_UNREADABLE = (ValueError, TypeError, UnsupportedAlgorithm)


class SignatureError(MusterError):
    """A key cannot be used, or a signature is not what it should be; says why."""


def new_signing_key() -> bytes:
    """A private key that nobody has yet."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def public_half(private: bytes) -> bytes:
    """The public half of a private key."""
    return (
        _private(private)
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )


def key_fingerprint(public: bytes) -> str:
    """The name of a key, as `sha256:` and 64 digits."""
    info = _public(public).public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return f"sha256:{hashlib.sha256(info).hexdigest()}"


def signature_over(private: bytes, content: bytes) -> bytes:
    """The signature over a document; the same each time, as far as the library can do that."""
    key = _private(private)
    try:
        return key.sign(content, ec.ECDSA(hashes.SHA256(), deterministic_signing=True))
    except UnsupportedAlgorithm:
        return key.sign(content, ec.ECDSA(hashes.SHA256()))


def check_signature(public: bytes, content: bytes, signature: bytes) -> None:
    """Raise SignatureError unless the owner of this key has signed this document."""
    try:
        _public(public).verify(signature, content, ec.ECDSA(hashes.SHA256()))
    except InvalidSignature:
        raise SignatureError("the signature does not fit: what was signed is not what is here") from None


def _private(private: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(private, None)
    except _UNREADABLE as error:
        raise SignatureError(f"the key that signs cannot be read: {error}") from error
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        raise SignatureError(
            "the key that signs is of another kind than ECDSA P-256; `muster bundles keygen` makes one"
        )
    return key


def _public(public: bytes) -> ec.EllipticCurvePublicKey:
    try:
        key = serialization.load_pem_public_key(public)
    except _UNREADABLE as error:
        raise SignatureError("the public key cannot be read") from error
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise SignatureError("the public key is of another kind than ECDSA P-256")
    return key
