"""Signatures with the secret of an attempt: how its agents prove to each other that they belong to it."""


def attempt_signature(secret: bytes, *fields: str | bytes) -> bytes:
    """HMAC-SHA256 of fields, each with its length, so that no two lists of fields look the same.

    A text may have bytes that are no UTF-8, as lone surrogates.
    """
    from hmac import digest  # noqa: PLC0415 - OpenSSL, once somebody asks

    encoded = [each if isinstance(each, bytes) else each.encode(errors="surrogateescape") for each in fields]
    return digest(secret, b"".join(len(each).to_bytes(4, "big") + each for each in encoded), "sha256")


def same_signature(shown: bytes, genuine: bytes) -> bool:
    """Whether two signatures are the same; takes as long for every wrong one."""
    from hmac import compare_digest  # noqa: PLC0415 - OpenSSL, once somebody asks

    return compare_digest(shown, genuine)
