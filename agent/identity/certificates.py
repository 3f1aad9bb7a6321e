"""The agent's side of the certificate program: what the agent wants of keys and certificates, without their library."""

import asyncio
import json
import os
import subprocess
from contextlib import suppress
from datetime import datetime
from typing import Any, Self

from muster.daemon.own_programs import command_of, environment_of_ours
from muster.domain.errors import UnavailableError
from muster.domain.ids import NodeId
from muster.trust.identity import CertificateError, CertificateFacts

CERTIFICATE_PROGRAM = "agent.identity.certificate_program"
CERTIFICATE_LIMIT = 40.0
"""Seconds for one answer, the start of the program included.

It needs a tenth of one, but the node may be busy, and whoever asks for what it shows has half of them."""
LONGEST_CERTIFICATE_ANSWER = 1 << 20


class Certificates:
    """Answers while it is open; the program starts with the first question.

    Raises CertificateError for what cannot be used, and UnavailableError if the program cannot be had.
    """

    def __init__(self) -> None:
        self._process: asyncio.subprocess.Process | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._end()

    async def new_key(self) -> bytes:
        """A fresh private key."""
        return str(await self._ask("key")).encode()

    async def key_among(self, keys: bytes, certificate: bytes) -> bytes:
        """The one of several private keys that belongs to a certificate."""
        return str(await self._ask("key among", keys, certificate)).encode()

    async def request(self, key: bytes, node: NodeId) -> bytes:
        """The request with which a node asks for its certificate."""
        return str(await self._ask("request", key, node.encode())).encode()

    async def shown(self, address: str) -> bytes:
        """The certificate of whoever answers with TLS at `host:port`, not believed yet."""
        return str(await self._ask("shown", address.encode())).encode()

    async def fingerprint(self, certificate: bytes) -> str:
        """The fingerprint of a certificate's key."""
        return str(await self._ask("fingerprint", certificate))

    async def fingerprints(self, bundle: bytes) -> list[str]:
        """The fingerprints of the keys of all certificates in a bundle."""
        return list(await self._ask("fingerprints", bundle))

    async def handed_over(self, statement: bytes, authority: bytes, now: datetime) -> str:
        """The fingerprint of the key that an authority says succeeds it."""
        return str(await self._ask("handed over", statement, authority, now.isoformat().encode()))

    async def facts(self, certificate: bytes) -> CertificateFacts:
        """What a certificate says, whoever signed it."""
        return _facts(await self._ask("facts", certificate))

    async def verify(self, certificate: bytes, authority: bytes, now: datetime) -> CertificateFacts:
        """What a certificate says, if this authority signed it and it is valid now."""
        return _facts(await self._ask("verify", certificate, authority, now.isoformat().encode()))

    async def _ask(self, kind: str, *told: bytes) -> Any:  # noqa: ANN401 - JSON
        question = json.dumps([kind, *(each.decode("latin-1") for each in told)]).encode() + b"\n"
        try:
            async with asyncio.timeout(CERTIFICATE_LIMIT):
                line = await self._answer(question)
        except TimeoutError:
            await self._end()
            raise UnavailableError(
                f"the certificate program did not answer for {CERTIFICATE_LIMIT:g} s; is the node overloaded?"
            ) from None
        except OSError as error:
            raise UnavailableError(f"the certificate program cannot be started: {error}") from error
        if not line.endswith(b"\n"):
            await self._end()
            raise UnavailableError("the certificate program was killed; the agent's log has its last words, if any")
        answer = json.loads(line)
        if "refusal" in answer:
            raise CertificateError(answer["refusal"])
        if "silence" in answer:
            raise UnavailableError(answer["silence"])
        return answer["answer"]

    async def _answer(self, question: bytes) -> bytes:
        if self._process is None:
            pipe, env = subprocess.PIPE, environment_of_ours(os.environ)
            self._process = await asyncio.create_subprocess_exec(
                *command_of(CERTIFICATE_PROGRAM), stdin=pipe, stdout=pipe, limit=LONGEST_CERTIFICATE_ANSWER, env=env
            )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(ConnectionError):  # then it has ended, and there is no answer
            self._process.stdin.write(question)
            await self._process.stdin.drain()
        return await self._process.stdout.readline()

    async def _end(self) -> None:
        """Have none; the next question starts another one."""
        if self._process is None:
            return
        ending, self._process = self._process, None
        with suppress(ProcessLookupError):
            ending.kill()  # it keeps nothing
        await ending.communicate()


def _facts(told: dict[str, str]) -> CertificateFacts:
    return CertificateFacts(
        key=told["key"],
        node=None if told["node"] is None else NodeId(told["node"]),
        not_before=datetime.fromisoformat(told["not_before"]),
        not_after=datetime.fromisoformat(told["not_after"]),
    )
