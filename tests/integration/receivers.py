"""Receivers of events: one of webhooks that answers as it is told to, and a mail server that keeps mail."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage

HEARD_WITHIN = 30.0
HANGS, CLOSES = "hangs", "closes"


@dataclass(frozen=True, kw_only=True)
class Received:
    """A request that came."""

    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(kw_only=True)
class Receiver:
    """A receiver of webhooks; what it answers stands in a script, and after that it is 204."""

    url: str = ""
    script: list[str] = field(default_factory=list)
    """Answers: a line like `500 Oh`, `302 Found http://elsewhere`, HANGS or CLOSES."""
    received: list[Received] = field(default_factory=list)
    heard: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def until(self, many: int) -> list[Received]:
        """What has come once it is so many."""
        async with asyncio.timeout(HEARD_WITHIN), self.heard:
            await self.heard.wait_for(lambda: len(self.received) >= many)
            return list(self.received)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.splitlines()
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines if line)}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        answer = self.script.pop(0) if self.script else "204 Taken"
        async with self.heard:
            self.received.append(Received(path=first.split()[1], headers=headers, body=body))
            self.heard.notify_all()
        if answer == HANGS:
            await reader.read()  # until the other side has had enough
        elif answer != CLOSES:
            code, reason, *place = answer.split()
            location = f"Location: {place[0]}\r\n" if place else ""
            writer.write(f"HTTP/1.1 {code} {reason}\r\n{location}Content-Length: 0\r\n\r\n".encode())
        writer.close()


@asynccontextmanager
async def receiver(*script: str) -> AsyncIterator[Receiver]:
    """A receiver on loopback, with these answers first."""
    found = Receiver(script=list(script))
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        yield found


@dataclass(kw_only=True)
class MailSink:
    """A mail server."""

    port: int = 0
    trusted: ssl.SSLContext | None = None
    """What it shows after STARTTLS, before which it takes no mail; None: it knows no TLS."""
    script: list[str] = field(default_factory=list)
    """Answers to the next recipients; after that they are taken."""
    mails: list[EmailMessage] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take mail until its sender leaves."""
        secured = False
        writer.write(b"220 sink\r\n")
        while line := await reader.readline():
            match line.split()[0].upper():
                case b"EHLO":
                    more = b"250-STARTTLS\r\n" if self.trusted is not None and not secured else b""
                    writer.write(b"250-sink\r\n" + more + b"250 8BITMIME\r\n")
                case b"STARTTLS":
                    assert self.trusted is not None
                    writer.write(b"220 go\r\n")
                    await writer.start_tls(self.trusted)
                    secured = True
                case b"MAIL" if self.trusted is not None and not secured:
                    writer.write(b"530 STARTTLS first\r\n")
                case b"RCPT" if self.script:
                    writer.write(self.script.pop(0).encode() + b"\r\n")
                case b"DATA":
                    writer.write(b"354 go\r\n")
                    content = await reader.readuntil(b"\r\n.\r\n")
                    self.mails.append(message_from_bytes(content[:-3], policy=policy.default))
                    writer.write(b"250 taken\r\n")
                case b"QUIT":
                    writer.write(b"221 bye\r\n")
                    break
                case _:
                    writer.write(b"250 well\r\n")
        writer.close()


@asynccontextmanager
async def mail_sink(trusted: ssl.SSLContext | None = None, *script: str) -> AsyncIterator[MailSink]:
    """A mail server on loopback."""
    found = MailSink(trusted=trusted, script=list(script))
    server = await asyncio.start_server(found.serve, "127.0.0.1", 0)
    found.port = server.sockets[0].getsockname()[1]
    async with server:
        yield found
