"""What an agent is told about keys and certificates by the program that it asks."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta

import psutil
import pytest

from agent.identity.certificates import Certificates
from muster.daemon.own_programs import environment_of_ours
from muster.domain.errors import UnavailableError
from muster.domain.ids import NodeId
from muster.trust.certificates import NODE_LIFE, facts, fingerprint, issue_node, make_authority, requested_key
from muster.trust.identity import CertificateError

NOW = datetime(2026, 5, 1, 12, tzinfo=UTC)
AUTHORITY, ANOTHER = make_authority(NOW), make_authority(NOW)
A = NodeId("a")


def programs() -> list[psutil.Process]:
    """Programs that an agent in this process asks."""
    return [each for each in psutil.Process().children() if "agent.identity.certificate_program" in each.cmdline()]


async def test_a_node_gets_along_with_what_it_is_told() -> None:
    async with Certificates() as certificates:
        key = await certificates.new_key()
        request = await certificates.request(key, A)
        certificate = issue_node(AUTHORITY, request, A, NOW)
        said = await certificates.verify(certificate, AUTHORITY.certificate, NOW)
        assert (said.node, said.key, said.not_after) == (A, requested_key(request), NOW + NODE_LIFE)
        assert said == await certificates.facts(certificate) == facts(certificate)
        assert await certificates.fingerprint(AUTHORITY.certificate) == fingerprint(AUTHORITY.certificate)
        assert (await certificates.facts(AUTHORITY.certificate)).node is None


async def test_what_cannot_be_used_is_refused_for_the_same_reason_and_the_next_question_answered() -> None:
    async with Certificates() as certificates:
        certificate = issue_node(AUTHORITY, await certificates.request(await certificates.new_key(), A), A, NOW)
        with pytest.raises(CertificateError, match="was not signed by the authority of this fleet"):
            await certificates.verify(certificate, ANOTHER.certificate, NOW)
        with pytest.raises(CertificateError, match=r"valid from 2026-05-01 11:55 .* and now it is 2026-05-03 12:00"):
            await certificates.verify(certificate, AUTHORITY.certificate, NOW + timedelta(days=2))
        for damaged in (b"", b"\xff\x00\n", certificate[:100]):
            with pytest.raises(CertificateError, match="the certificate cannot be read"):
                await certificates.facts(damaged)
        with pytest.raises(CertificateError, match="the private key cannot be read"):
            await certificates.request(b"none", A)
        assert (await certificates.facts(certificate)).node == A


async def test_the_program_is_there_from_the_first_question_on_and_shows_nobody_the_key() -> None:
    async with Certificates() as certificates:
        assert programs() == []
        key = await certificates.new_key()
        await certificates.request(key, A)
        (program,) = programs()
        secret = key.decode().splitlines()[1]
        shown = [*program.cmdline(), *program.environ().values()]
        assert [each for each in shown if secret in each] == []
        assert [each.path for each in program.open_files()] == []
    assert programs() == []


async def test_a_program_that_was_killed_is_told_from_one_that_refuses() -> None:
    async with Certificates() as certificates:
        await certificates.new_key()
        (program,) = programs()
        program.kill()
        with pytest.raises(UnavailableError, match="the certificate program was killed"):
            await certificates.new_key()
        assert programs() == []
        assert (await certificates.new_key()).startswith(b"-----BEGIN PRIVATE KEY-----")


async def test_nobody_answers_with_tls_where_nobody_is() -> None:
    async with Certificates() as certificates:
        for address in ("127.0.0.1:1", "127.0.0.1:none"):
            with pytest.raises(UnavailableError, match=f"no coordinator with TLS answers at {address}: "):
                await certificates.shown(address)


def test_an_agent_has_loaded_no_library_for_cryptography_and_what_else_it_can_do_without() -> None:
    """Neither by itself nor through what it imports; gRPC has its own TLS."""
    program = "import sys, agent.__main__; print(*(n for n in sys.argv[1:] if sys.modules.get(n)), sep=',', end='.')"
    names = ("ssl", "_ssl", "_hashlib", "cryptography", "aiodocker", "psutil")
    said = subprocess.run(
        [sys.executable, "-c", program, *names], env=environment_of_ours(os.environ), capture_output=True, check=True
    )
    assert said.stdout == b"."
