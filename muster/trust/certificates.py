"""Keys and certificates as bytes in PEM form; the only module that knows the library for them.

The fleet has one authority. It signs the coordinator's certificate and those of the nodes, and nothing else. So whoever
shows a certificate of it with the name SERVER_NAME is the coordinator, at whatever address the caller has reached it.
"""

import hashlib
import ipaddress
import re
from collections.abc import Iterable
from datetime import datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from muster.domain.ids import NodeId
from muster.trust.identity import SKEW, CertificateError, CertificateFacts, Identity
from muster.trust.names import SERVER_NAME, node_in_uri, peer_name, uri_of_node

AUTHORITY_LIFE = timedelta(days=3650)
HANDOVER_LIFE = timedelta(days=180)
"""Time in which those who knew an authority learn its successor by themselves."""
SERVER_LIFE = timedelta(days=90)
NODE_LIFE = timedelta(hours=24)
PEER_LIFE = timedelta(days=30)
"""Nodes ask each other while the coordinator is away, and then nobody renews their certificates."""

_COMMON_NAME_LIMIT = 64
_NAME_DIGITS = 16
_UNREADABLE = (
    *(ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm),
    *(x509.InvalidVersion, x509.DuplicateExtension, x509.UnsupportedGeneralNameType),
)
"""What the library raises for what is none, for what is damaged, and for what it does not know."""
_PRIVATE = re.compile(rb"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.*?-----END \1-----\n?", re.DOTALL)


def new_key() -> bytes:
    """A fresh private key (ECDSA P-256, PKCS 8)."""
    return ec.generate_private_key(ec.SECP256R1()).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def make_authority(now: datetime) -> Identity:
    """A new authority; its certificate signs itself."""
    key = new_key()
    private = _private(key)
    # With a name of its own, so that nobody who trusts two of them takes one for the other.
    name = _name(f"Muster fleet authority {_fingerprint(private.public_key())[:_NAME_DIGITS]}")
    builder = _builder(name, name, private.public_key(), now, AUTHORITY_LIFE)
    return Identity(certificate=_pem(_as_authority(builder).sign(private, hashes.SHA256())), key=key)


def hand_over(authority: Identity, successor: bytes, now: datetime, life: timedelta = HANDOVER_LIFE) -> bytes:
    """The statement of an authority that another one, whose certificate that is, succeeds it.

    It has the form of a certificate for the successor's key. It is read as a statement only and never part of a TLS
    chain, where the authority's own certificate forbids others below it.
    """
    signer, root, other = _private(authority.key), _certificate(authority.certificate), _certificate(successor)
    key = other.public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    builder = _as_authority(_builder(other.subject, root.subject, key, now, life))
    return _pem(builder.sign(signer, hashes.SHA256()))


def handed_over(statement: bytes, authority: bytes, now: datetime) -> str:
    """The fingerprint of the key that an authority says succeeds it; raises CertificateError if it does not say so."""
    said = verify(statement, authority, now)
    try:
        limits = _certificate(statement).extensions.get_extension_for_class(x509.BasicConstraints).value
    except (x509.ExtensionNotFound, *_UNREADABLE) as error:
        raise CertificateError("the statement does not speak of an authority") from error
    if not limits.ca:  # the certificate of a node, say, which is signed by the authority as well
        raise CertificateError("the statement does not speak of an authority")
    return said.key


def issue_server(authority: Identity, names: Iterable[str], now: datetime, life: timedelta = SERVER_LIFE) -> Identity:
    """A new key and certificate for the coordinator, good for SERVER_NAME and these names and addresses."""
    key = new_key()
    general = [_general_name(name) for name in dict.fromkeys((SERVER_NAME, *names))]
    certificate = _issue(
        authority,
        _private(key).public_key(),
        SERVER_NAME,
        x509.SubjectAlternativeName(general),
        [ExtendedKeyUsageOID.SERVER_AUTH],
        (now, life),
    )
    return Identity(certificate=certificate, key=key)


def request_certificate(key: bytes, node: NodeId) -> bytes:
    """The request with which a node asks for its certificate; proves that it has the key."""
    private = _private(key)
    builder = x509.CertificateSigningRequestBuilder().subject_name(_name(node))
    return builder.sign(private, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


def issue_node(authority: Identity, request: bytes, node: NodeId, now: datetime, life: timedelta = NODE_LIFE) -> bytes:
    """The certificate of a node, for nothing but being that client.

    Nothing but the key of the request counts; the caller knows who asked, and for which node that may be.
    """
    key = _request(request).public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    uri = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(uri_of_node(node))])
    return _issue(authority, key, f"node {node}", uri, [ExtendedKeyUsageOID.CLIENT_AUTH], (now, life))


def issue_peer(authority: Identity, request: bytes, node: NodeId, now: datetime, life: timedelta = PEER_LIFE) -> bytes:
    """The certificate with which a node asks other nodes and answers them; to the coordinator it says nothing."""
    key = _request(request).public_key()
    assert isinstance(key, ec.EllipticCurvePublicKey)
    name = x509.SubjectAlternativeName([x509.DNSName(peer_name(node))])
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    return _issue(authority, key, f"peer {node}", name, purposes, (now, life))


def fingerprint(certificate: bytes) -> str:
    """The fingerprint of a certificate's key, as `CertificateFacts.key`."""
    return _fingerprint(_key_of(_certificate(certificate)))


def fingerprints(bundle: bytes) -> tuple[str, ...]:
    """The fingerprints of the keys of all certificates in a bundle."""
    return tuple(_fingerprint(_key_of(each)) for each in _certificates(bundle))


def requested_key(request: bytes) -> str:
    """The fingerprint of the key in a request whose sender has proved to have it."""
    return _fingerprint(_request(request).public_key())


def facts(certificate: bytes) -> CertificateFacts:
    """What a certificate says, whoever signed it."""
    parsed = _certificate(certificate)
    return CertificateFacts(
        key=_fingerprint(_key_of(parsed)),
        node=_node(parsed),
        not_before=parsed.not_valid_before_utc,
        not_after=parsed.not_valid_after_utc,
    )


def signer_of(certificate: bytes) -> str:
    """The id of the authority that a certificate says has signed it; raises CertificateError if it says none."""
    try:
        said = _certificate(certificate).extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value
    except (x509.ExtensionNotFound, *_UNREADABLE) as error:
        raise CertificateError("the certificate does not say which authority signed it") from error
    return (said.key_identifier or b"").hex()


def signers_in(bundle: bytes) -> frozenset[str]:
    """The ids of all authorities in a bundle, as `signer_of` has them."""
    return frozenset(_id_of(_key_of(each)) for each in _certificates(bundle))


def verify(certificate: bytes, authority: bytes, now: datetime) -> CertificateFacts:
    """What a certificate says, if one of these authorities signed it and it is valid now; raises CertificateError."""
    parsed = _certificate(certificate)
    if not any(_has_issued(root, parsed) for root in _certificates(authority)):
        raise CertificateError("the certificate was not signed by the authority of this fleet")
    if not parsed.not_valid_before_utc <= now <= parsed.not_valid_after_utc:
        span = f"{parsed.not_valid_before_utc:%Y-%m-%d %H:%M} to {parsed.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        raise CertificateError(f"the certificate is valid from {span}, and now it is {now:%Y-%m-%d %H:%M}")
    return facts(certificate)


def matches_key(certificate: bytes, key: bytes) -> bool:
    """Whether a private key belongs to a certificate."""
    return _fingerprint(_private(key).public_key()) == fingerprint(certificate)


def key_among(keys: bytes, certificate: bytes) -> bytes:
    """The one of several private keys that belongs to a certificate; raises CertificateError if none does."""
    for found in _PRIVATE.finditer(keys):
        if matches_key(certificate, found.group()):
            return found.group()
    raise CertificateError("there is no private key that belongs to the certificate")


def _issue(
    authority: Identity,
    key: ec.EllipticCurvePublicKey,
    name: str,
    alternative: x509.SubjectAlternativeName,
    purposes: Iterable[x509.ObjectIdentifier],
    span: tuple[datetime, timedelta],
) -> bytes:
    signer, root = _private(authority.key), _certificate(authority.certificate)
    issuer_key = signer.public_key()
    builder = (
        _builder(_name(name), root.subject, key, *span)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=True)
        .add_extension(alternative, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )
    return _pem(builder.sign(signer, hashes.SHA256()))


def _has_issued(root: x509.Certificate, certificate: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(root)
    except _UNREADABLE:
        return False
    return True


def _as_authority(builder: x509.CertificateBuilder) -> x509.CertificateBuilder:
    return builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True).add_extension(
        _usage(signs_certificates=True), critical=True
    )


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _private(key: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        loaded = serialization.load_pem_private_key(key, None)
    except _UNREADABLE as error:
        raise CertificateError("the private key cannot be read") from error
    if not isinstance(loaded, ec.EllipticCurvePrivateKey):
        raise CertificateError("the private key is of another kind than ECDSA")
    return loaded


def _certificate(pem: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(pem)
    except _UNREADABLE as error:
        raise CertificateError("the certificate cannot be read") from error


def _certificates(bundle: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(bundle)
    except _UNREADABLE as error:
        raise CertificateError("the certificate cannot be read") from error


def _key_of(certificate: x509.Certificate) -> object:
    try:
        return certificate.public_key()
    except _UNREADABLE as error:
        raise CertificateError("the key of the certificate cannot be read") from error


def _request(pem: bytes) -> x509.CertificateSigningRequest:
    try:
        request = x509.load_pem_x509_csr(pem)
        proved, key = request.is_signature_valid, request.public_key()
    except _UNREADABLE as error:
        raise CertificateError("the request for a certificate cannot be read") from error
    if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
        raise CertificateError("the request is for a key of another kind than ECDSA P-256")
    if not proved:
        raise CertificateError("the request does not prove that its sender has the key")
    return request


def _node(certificate: x509.Certificate) -> NodeId | None:
    names = _names(certificate)
    uris = () if names is None else names.get_values_for_type(x509.UniformResourceIdentifier)
    return node_in_uri(uris[0]) if len(uris) == 1 else None


def _names(certificate: x509.Certificate) -> x509.SubjectAlternativeName | None:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return None
    except _UNREADABLE as error:
        raise CertificateError("the extensions of the certificate cannot be read") from error


def _fingerprint(key: object) -> str:
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise CertificateError("the key is of another kind than ECDSA")
    info = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(info).hexdigest()


def _id_of(key: object) -> str:
    if not isinstance(key, ec.EllipticCurvePublicKey):
        raise CertificateError("the key is of another kind than ECDSA")
    return x509.SubjectKeyIdentifier.from_public_key(key).digest.hex()


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common[:_COMMON_NAME_LIMIT])])


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
