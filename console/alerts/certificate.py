"""The certificate that a console shows, which somebody has to replace before it ends."""

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

from console.alerts.alert import AlertKind, AlertSign
from muster.domain.notifications.event_types import EventSeverity
from muster.trust.certificates import facts
from muster.trust.identity import CertificateError

CERTIFICATE_ENDS_SOON = timedelta(days=7)
"""The time before the end of a certificate from which on somebody should replace it."""


def certificate_end(file: Path | None) -> datetime | None:
    """When the certificate in a file ends; None: there is none that can be read."""
    with suppress(OSError, CertificateError):  # who serves with it says what is wrong with it
        return None if file is None else facts(file.read_bytes()).not_after
    return None


def certificate_signs(ends: datetime | None, now: datetime) -> Iterator[AlertSign]:
    """A sign where the certificate that a console shows ends soon, or has ended."""
    if ends is None or ends - now > CERTIFICATE_ENDS_SOON:
        return
    has_ended = ends <= now
    yield AlertSign(
        kind=AlertKind.CERTIFICATE_ENDS,
        severity=EventSeverity.CRITICAL if has_ended else EventSeverity.WARNING,
        subject="console",
        text=f"the certificate of the console {'has ended' if has_ended else 'ends'} on {ends:%Y-%m-%d %H:%M} UTC; "
        "replace the file of --cert, and start the console anew",
        since=ends - CERTIFICATE_ENDS_SOON,
    )
