"""What stores and their library say, as one sentence."""

import pytest

from muster.transfer.bucket_faults import BucketAwayError, BucketRefusedError, bucket_fault

WHAT = "s3://acme/data/a.tar"


def answered(status: int, code: str = "") -> str:
    """What the library says of an answer."""
    body = f'<?xml version="1.0"?>\n<Error><Code>{code}</Code><Key>k</Key></Error>' if code else ""
    return (
        "Generic S3 error: Error performing GET http://127.0.0.1:1/acme/data?prefix=x in 7.7ms - Server returned "
        f"non-2xx status code: {status} Words: {body}\n\nDebug source:\nGeneric {{ … }}"
    )


@pytest.mark.parametrize(
    ("text", "secret", "sentence"),
    [
        (answered(403, "SignatureDoesNotMatch"), "store", f"{WHAT} refuses the secret 'store' (SignatureDoesNotMatch)"),
        (answered(403), "", f"{WHAT} is not open to everybody (HTTP 403); name the secret that opens it"),
        (answered(404, "NoSuchBucket"), "store", f"there is no such bucket: {WHAT}"),
        (answered(404, "NoSuchKey"), "store", f"there is no object {WHAT} (NoSuchKey)"),
        (
            answered(412, "PreconditionFailed"),
            "",
            f"{WHAT} has changed since this job began; submit the job again for ",
        ),
        (answered(301, "PermanentRedirect"), "", f"the bucket of {WHAT} is elsewhere (PermanentRedirect); give the "),
        (answered(400, "InvalidArgument"), "", f"{WHAT} is not given out (InvalidArgument)"),
        (
            'Encountered object with invalid path: Path "data//b" contained empty path segment\n\nDebug source:',
            "store",
            f"below {WHAT} is an object named 'data//b', which no file can be; name objects beside it",
        ),
        (
            "GET https://a/certificate - HTTP error: sent\n\nerror: InvalidCertificate(\n   UnknownIssuer,\n ),",
            "",
            f"{WHAT} is behind a certificate that this node does not believe (UnknownIssuer); if ",
        ),
    ],
)
def test_what_does_not_change_by_asking_again_is_refused(text: str, secret: str, sentence: str) -> None:
    found = bucket_fault(ValueError(text), WHAT, secret)
    assert isinstance(found, BucketRefusedError)
    assert str(found).startswith(sentence)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (answered(503, "SlowDown"), f"{WHAT} has no answer now (SlowDown)"),
        (
            "Error performing GET https://a/certificate - HTTP error: sent",
            f"{WHAT} cannot be reached: HTTP error: sent",
        ),
        (answered(500), f"{WHAT} has no answer now (HTTP 500)"),
        (answered(429), f"{WHAT} has no answer now (HTTP 429)"),
        (
            'Error performing GET http://a/b?X-Key=1 in 1ms - HTTP error\n\nmessage: "Connection refused"',
            f"{WHAT} cannot be reached: Connection refused",
        ),
        (
            "Error performing GET http://a/b?X-Key=1 in 1ms - HTTP error: error sending for http://a/b?X-Key=1",
            f"{WHAT} cannot be reached: HTTP error: error sending for http://a/b",
        ),
    ],
)
def test_what_may_be_there_later_is_away(text: str, sentence: str) -> None:
    found = bucket_fault(ValueError(text), WHAT, "store")
    assert isinstance(found, BucketAwayError)
    assert str(found) == sentence
