"""Events by mail, over SMTP."""

import asyncio
import json
import smtplib
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.utils import formatdate
from enum import StrEnum
from pathlib import Path

from console.events.answer import TargetAnswer
from console.events.believed import believing
from console.events.wording import mail_text, subject_line

MAILED_WITHIN = 10.0
"""Seconds for each step of a mail server."""


class MailSecurity(StrEnum):
    """How the way to the mail server is secured."""

    STARTTLS = "starttls"  #: the connection turns to TLS before anything is said
    TLS = "tls"  #: TLS from the first byte on
    NONE = "none"  #: plain text, for a server on this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """The server that takes mail."""

    host: str
    port: int
    sender: str
    """The address that mail is from."""
    security: MailSecurity = MailSecurity.STARTTLS
    user: str = ""
    password: str = field(default="", repr=False)
    authority: Path | None = None
    """A file of certificates that are believed beside those of the system."""


class Mailer:
    """Sends events as mail."""

    def __init__(self, server: MailServer, patience: float = MAILED_WITHIN) -> None:
        self._server = server
        self._patience = patience

    async def send(self, to: tuple[str, ...], body: bytes) -> TargetAnswer:
        """What the server says to a mail about an event, which is a CloudEvent as JSON."""
        return await asyncio.to_thread(self._send, self._message(to, body))

    def _message(self, to: tuple[str, ...], body: bytes) -> EmailMessage:
        event = json.loads(body)
        message = EmailMessage()
        message["Subject"] = f"[Muster] {subject_line(event)}"
        message["From"] = self._server.sender
        message["To"] = ", ".join(to)
        message["Date"] = formatdate()
        message["Message-ID"] = f"<{event['id'].replace('/', '.')}@{event['source'].removeprefix('muster://')}.muster>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(mail_text(event))
        return message

    def _send(self, message: EmailMessage) -> TargetAnswer:
        try:
            with self._connected() as smtp:
                if self._server.user:
                    smtp.login(self._server.user, self._server.password)
                refused = smtp.send_message(message)
        except smtplib.SMTPResponseException as error:
            return TargetAnswer(
                taken=False, told=f"{error.smtp_code} {_line(error.smtp_error)}", status=error.smtp_code
            )
        except smtplib.SMTPRecipientsRefused as error:
            code, said = next(iter(error.recipients.values()))
            return TargetAnswer(taken=False, told=f"{code} {_line(said)}", status=code)
        except (smtplib.SMTPException, OSError) as error:
            return TargetAnswer(taken=False, told=str(error) or type(error).__name__)
        return TargetAnswer(
            taken=True, told=f"taken, {len(refused)} of its readers were refused" if refused else "taken"
        )

    def _connected(self) -> smtplib.SMTP:
        server, trusted = self._server, believing(self._server.authority)
        if server.security is MailSecurity.TLS:
            return smtplib.SMTP_SSL(server.host, server.port, timeout=self._patience, context=trusted)
        smtp = smtplib.SMTP(server.host, server.port, timeout=self._patience)
        if server.security is MailSecurity.STARTTLS:
            try:
                smtp.starttls(context=trusted)
            except BaseException:
                smtp.close()
                raise
        return smtp


def _line(said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    return " ".join(text.split())[:200]
