"""The fleet's authority, and what it signs."""

import base64
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from muster.domain.ids import NodeId
from muster.trust.certificates import (
    NODE_LIFE,
    PEER_LIFE,
    facts,
    fingerprint,
    issue_node,
    issue_peer,
    issue_server,
    key_among,
    make_authority,
    matches_key,
    new_key,
    request_certificate,
    requested_key,
    signer_of,
    signers_in,
    verify,
)
from muster.trust.identity import CertificateError, Identity
from muster.trust.names import SERVER_NAME, peer_name

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
AUTHORITY = make_authority(NOW)
A = NodeId("a")


def of_node(now: datetime = NOW, authority: Identity = AUTHORITY) -> bytes:
    return issue_node(authority, request_certificate(new_key(), A), A, now)


def alternative_names(certificate: bytes) -> x509.SubjectAlternativeName:
    parsed = x509.load_pem_x509_certificate(certificate)
    return parsed.extensions.get_extension_for_class(x509.SubjectAlternativeName).value


def purposes(certificate: bytes) -> list[x509.ObjectIdentifier]:
    parsed = x509.load_pem_x509_certificate(certificate)
    return list(parsed.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value)


def test_the_certificate_of_a_node_names_it_and_is_good_for_a_client_only() -> None:
    certificate = of_node()
    uris = alternative_names(certificate).get_values_for_type(x509.UniformResourceIdentifier)
    assert (uris, purposes(certificate)) == (["muster://node/a"], [ExtendedKeyUsageOID.CLIENT_AUTH])
    said = verify(certificate, AUTHORITY.certificate, NOW)
    assert (said.node, said.not_after) == (A, NOW + NODE_LIFE)


def test_the_coordinators_certificate_carries_its_name_and_its_addresses() -> None:
    server = issue_server(AUTHORITY, ["10.0.0.1", "gpu.example.org", "10.0.0.1"], NOW)
    names = alternative_names(server.certificate)
    assert names.get_values_for_type(x509.DNSName) == [SERVER_NAME, "gpu.example.org"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.1"]
    assert purposes(server.certificate) == [ExtendedKeyUsageOID.SERVER_AUTH]
    assert verify(server.certificate, AUTHORITY.certificate, NOW).node is None
    assert matches_key(server.certificate, server.key)
    assert not matches_key(server.certificate, new_key())


def test_the_certificate_for_peers_is_no_nodes_and_not_the_coordinators() -> None:
    certificate = issue_peer(AUTHORITY, request_certificate(new_key(), A), A, NOW)
    names = alternative_names(certificate)
    assert names.get_values_for_type(x509.DNSName) == [peer_name(A)]
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == []
    assert purposes(certificate) == [ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.SERVER_AUTH]
    said = verify(certificate, AUTHORITY.certificate, NOW)
    assert (said.node, said.not_after) == (None, NOW + PEER_LIFE)


def test_the_name_for_peers_fits_into_dns_however_long_that_of_the_node_is() -> None:
    long = peer_name(NodeId("a" * 253))
    assert re.fullmatch(r"[0-9a-f]{40}\.node\.muster", long)
    assert peer_name(NodeId("a")) != peer_name(NodeId("A"))


def test_the_name_in_a_request_counts_for_nothing() -> None:
    request = request_certificate(new_key(), NodeId("b"))
    assert facts(issue_node(AUTHORITY, request, A, NOW)).node == A


def test_a_certificate_of_another_authority_is_refused() -> None:
    with pytest.raises(CertificateError, match="not signed by the authority of this fleet"):
        verify(of_node(authority=make_authority(NOW)), AUTHORITY.certificate, NOW)


@pytest.mark.parametrize("now", [NOW - timedelta(minutes=6), NOW + NODE_LIFE + timedelta(seconds=1)])
def test_a_certificate_before_or_after_its_time_is_refused(now: datetime) -> None:
    with pytest.raises(CertificateError, match="is valid from"):
        verify(of_node(), AUTHORITY.certificate, now)


def test_half_of_a_life_is_in_its_middle() -> None:
    assert facts(of_node()).half_life == NOW + NODE_LIFE / 2


def test_a_fingerprint_is_that_of_the_key() -> None:
    key = new_key()
    request = request_certificate(key, A)
    certificate = issue_node(AUTHORITY, request, A, NOW)
    assert requested_key(request) == fingerprint(certificate) == facts(certificate).key
    assert re.fullmatch("[0-9a-f]{64}", fingerprint(certificate))
    assert fingerprint(AUTHORITY.certificate) != fingerprint(make_authority(NOW).certificate)


def test_a_request_that_was_tampered_with_is_refused() -> None:
    ours = x509.load_pem_x509_csr(request_certificate(new_key(), A)).public_bytes(serialization.Encoding.DER)
    broken = ours[:-4] + bytes(4)
    pem = x509.load_der_x509_csr(broken).public_bytes(serialization.Encoding.PEM)
    with pytest.raises(CertificateError):
        requested_key(pem)


def test_a_request_for_a_key_of_another_kind_is_refused() -> None:
    key = rsa.generate_private_key(65537, 2048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    request = x509.CertificateSigningRequestBuilder().subject_name(name).sign(key, hashes.SHA256())
    with pytest.raises(CertificateError, match="another kind than ECDSA P-256"):
        issue_node(AUTHORITY, request.public_bytes(serialization.Encoding.PEM), A, NOW)


def damaged(pem: bytes, before: bytes, after: bytes) -> bytes:
    """The same PEM with other bytes in some place of what it holds."""
    first, *middle, last = pem.decode().strip().split("\n")
    held = base64.b64decode("".join(middle))
    assert before in held
    return "\n".join([first, base64.b64encode(held.replace(before, after)).decode(), last, ""]).encode()


P256 = bytes.fromhex("2a8648ce3d030107")
ANOTHER = bytes.fromhex("2a8648ce3d03017b")


def test_a_curve_that_nobody_knows_is_refused_and_no_fault_of_the_coordinator() -> None:
    with pytest.raises(CertificateError, match="the request for a certificate cannot be read"):
        requested_key(damaged(request_certificate(new_key(), A), P256, ANOTHER))
    for reader in (facts, fingerprint):
        with pytest.raises(CertificateError, match="the key of the certificate cannot be read"):
            reader(damaged(of_node(), P256, ANOTHER))
    with pytest.raises(CertificateError, match="the private key cannot be read"):
        matches_key(of_node(), damaged(new_key(), P256, ANOTHER))


@pytest.mark.parametrize("reader", [facts, fingerprint])
def test_a_version_that_nobody_knows_is_refused(reader: Callable[[bytes], object]) -> None:
    version = bytes.fromhex("a003020102")
    with pytest.raises(CertificateError, match="cannot be read"):
        reader(damaged(of_node(), version, version[:-1] + b"E"))


@pytest.mark.parametrize("reader", [facts, requested_key, fingerprint])
def test_rubbish_is_refused(reader: object) -> None:
    assert callable(reader)
    with pytest.raises(CertificateError, match="cannot be read"):
        reader(b"-----BEGIN NOTHING-----")


def test_a_key_does_not_show_when_an_identity_is_printed() -> None:
    assert "PRIVATE" not in repr(AUTHORITY)


def test_the_key_of_a_certificate_is_found_among_others() -> None:
    older, own, newer = new_key(), new_key(), new_key()
    certificate = issue_node(AUTHORITY, request_certificate(own, A), A, NOW)
    assert key_among(own, certificate) == key_among(newer + own + older, certificate) == own
    for keys in (newer + older, b"", b"-----BEGIN PRIVATE KEY-----", certificate):
        with pytest.raises(CertificateError, match="no private key that belongs to the certificate"):
            key_among(keys, certificate)


def test_a_certificate_says_which_authority_signed_it() -> None:
    other = make_authority(NOW)
    assert signers_in(AUTHORITY.certificate + other.certificate) == {
        signer_of(of_node()),
        signer_of(of_node(authority=other)),
    }
    assert signers_in(other.certificate) == {signer_of(of_node(authority=other))}
    for nobodys in (AUTHORITY.certificate, b"", b"none"):
        with pytest.raises(CertificateError, match=r"does not say which authority|cannot be read"):
            signer_of(nobodys)
