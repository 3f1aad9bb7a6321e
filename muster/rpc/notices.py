"""Names of trailing metadata with which the coordinator tells something beside an answer, while there is something."""

TOKEN_ENDS = "muster-token-ends"  # noqa: S105 - the name of a field
"""When the token that was shown ends (ISO 8601, UTC), in the last days before it does."""
AUTHORITIES = "muster-authorities"
"""The digest of the authorities that count, once there was more than one; clients that know others ask for them."""


def digest_of(bundle: bytes) -> str:
    """What tells one bundle of certificates from another."""
    import hashlib  # noqa: PLC0415 - OpenSSL, which most commands do without

    return hashlib.sha256(bundle).hexdigest()[:32]
