"""What stores answer when something is wrong, as one sentence that has nothing of a credential in it."""

import re

from muster.domain.errors import MusterError

_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>([A-Za-z0-9.]{1,64})</Code>")
_REASON = re.compile(r'message: "([^"]{1,80})"')
_BAD_PATH = re.compile(r'Path "(?P<path>[^\n]{1,200}?)"[ :]')
_CERTIFICATE = re.compile(r"InvalidCertificate\(\s*(\w{1,40})")
_DENIED = frozenset({401, 403})
_LATER = frozenset({408, 425, 429})
_ELSEWHERE = frozenset({301, 302, 307, 308})
_CHANGED, _GONE = 412, 404
_OWN_FAULTS = 500
_NO_PLACE = {"NoSuchBucket": "bucket", "ContainerNotFound": "container"}


class BucketRefusedError(MusterError):
    """The objects cannot be had, however often one asks; says why."""


class NoObjectError(BucketRefusedError):
    """The bucket is there, and has no object of such a name."""


class BucketAwayError(MusterError):
    """The objects cannot be had now; says why."""


def bucket_fault(error: Exception, what: str, secret: str) -> BucketRefusedError | BucketAwayError:
    """What an error of the library says of `what`, a URL that was opened with a secret or without one."""
    text = str(error)
    found = _STATUS.search(text)
    if found is not None:
        return _of_status(int(found[1]), _CODE.search(text), what, secret)
    if (unbelieved := _CERTIFICATE.search(text)) is not None:
        return BucketRefusedError(
            f"{what} is behind a certificate that this node does not believe ({unbelieved[1]}); if the store has "
            "an authority of its own, give the secret its certificate as `ca`"
        )
    if (path := _BAD_PATH.search(text)) is not None:
        return BucketRefusedError(
            f"below {what} is an object named {path['path']!r}, which no file can be; name objects beside it"
        )
    reason = _REASON.search(text)
    return BucketAwayError(f"{what} cannot be reached: {reason[1] if reason is not None else _in_short(text)}")


def changed(what: str, was: str, now: str) -> BucketRefusedError:
    """An object is another one than the job began with."""
    return BucketRefusedError(
        f"{what} has changed since this job began with version {was}: it is {now} now; submit the job again for the "
        "new one"
    )


def _of_status(
    status: int, found: re.Match[str] | None, what: str, secret: str
) -> BucketRefusedError | BucketAwayError:
    code = f"HTTP {status}" if found is None else found[1]
    if status in _LATER or status >= _OWN_FAULTS:
        return BucketAwayError(f"{what} has no answer now ({code})")
    return BucketRefusedError(_refusal(status, code, what, secret))


def _refusal(status: int, code: str, what: str, secret: str) -> str:
    if status in _DENIED and secret:
        return f"{what} refuses the secret {secret!r} ({code})"
    if status in _DENIED:
        return f"{what} is not open to everybody ({code}); name the secret that opens it"
    if status == _GONE:
        place = _NO_PLACE.get(code)
        return f"there is no such {place}: {what}" if place else f"there is no object {what} ({code})"
    if status == _CHANGED:
        return f"{what} has changed since this job began; submit the job again for the new one"
    if status in _ELSEWHERE:
        return f"the bucket of {what} is elsewhere ({code}); give the secret its `region`"
    return f"{what} is not given out ({code})"


def _in_short(text: str) -> str:
    """The first line of what a library says, without what follows in a URL."""
    line = text.partition("\n")[0].rpartition(" - ")[2] or "no reason is known"
    return re.sub(r"\?\S*", "", line)[:200]
