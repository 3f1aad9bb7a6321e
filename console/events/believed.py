"""Certificates that targets of events may show."""

import ssl
from pathlib import Path


def believing(authority: Path | None) -> ssl.SSLContext:
    """TLS that believes what the system does, and the certificates in this file besides; raises OSError."""
    believed = ssl.create_default_context()
    if authority is not None:
        believed.load_verify_locations(authority)
    return believed
