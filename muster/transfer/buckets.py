"""Objects of object stores, listed, read and written. The only module that knows the library for that.

The library reads no variable, no file and no service of the node for credentials: the program that loads this module is
started without such variables, and whoever has no key asks without a signature. Pages that lead on are followed by
the library as long as they are no plain HTTP behind HTTPS.
"""

import asyncio
import re
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import BaseError
from obstore.store import AzureStore, S3Store

from muster.domain.data.buckets.bucket_url import BucketUrl
from muster.domain.data.buckets.listing import (
    LONGEST_OBJECT_VERSION,
    MOST_OBJECTS,
    BucketListing,
    ListingError,
    StoredObject,
    chosen,
)
from muster.domain.data.pattern import NamePattern
from muster.transfer.addresses import is_of_link, leads_to_link
from muster.transfer.bucket_faults import BucketAwayError, BucketRefusedError, NoObjectError, bucket_fault, changed
from muster.transfer.store_access import StoreAccess

MOST_LOOKED_AT = 1_000_000
"""Objects of a bucket that are looked at for one name with wildcards."""
BUCKET_CONNECT = 10
"""Seconds for a connection to a store."""
BUCKET_RETRIES = 2
"""How often the library itself asks again; whoever asks it goes on with that."""

SENT_PART = 8 * 1024 * 1024
"""Bytes of a part of an object that is sent; a smaller object is sent at once."""
MOST_SENT_PARTS = 9000
"""Parts of one object, of which a store takes 10,000; larger objects have larger parts."""
PARTS_SENT_BESIDE = 4
"""Parts of one object that are sent at the same time."""

_RETRIES_WITHIN = timedelta(seconds=10)
_EMPTY_AT_ONCE = 16
_LISTED_AT_ONCE = 1000
_ERRORS = (BaseError, OSError, ValueError)  # some of the library's own are these
_NAMED = 3
_ACCOUNT = re.compile(r"[a-z0-9]{3,24}")


class ObjectBucket:
    """Lists, reads and writes objects of one bucket."""

    def __init__(self, access: StoreAccess, bucket: str) -> None:
        """Connect to nothing yet. Raises BucketRefusedError where that cannot be a way to a store."""
        if access.endpoint and not _is_endpoint(access.endpoint):
            raise BucketRefusedError(
                f"the secret {access.secret!r} has an endpoint that is no URL like https://s3.example.org"
            )
        if access.account and _ACCOUNT.fullmatch(access.account) is None:
            raise BucketRefusedError(f"the secret {access.secret!r} has an account that is no name like acmedata")
        self._access = access
        self._bucket = bucket
        options: dict[str, Any] = {
            "allow_http": access.endpoint.startswith("http://"),
            "connect_timeout": f"{BUCKET_CONNECT}s",
            "timeout": f"{max(1, round(access.patience))}s",
            "user_agent": "muster",
        }
        if access.ca:
            options["root_certificate"] = access.ca
        try:
            self._store: S3Store | AzureStore = (AzureStore if access.account else S3Store)(
                bucket,
                client_options=options,  # type: ignore[arg-type]  # its stubs name all options, of which these are some
                retry_config={"max_retries": BUCKET_RETRIES, "retry_timeout": _RETRIES_WITHIN},
                **(_azure_keys(access) if access.account else _s3_keys(access)),
            )
        except _ERRORS:
            parts = "key, sas, endpoint or ca" if access.account else "endpoint, region or ca"
            raise BucketRefusedError(f"the secret {access.secret!r} cannot be used: its {parts} is none") from None

    async def check_place(self) -> None:
        """Raise BucketRefusedError where the store's name leads to an address of the link itself."""
        host = urlsplit(self._access.endpoint).hostname
        if not host:
            return  # the place of AWS, or of an account of Azure
        loop = asyncio.get_running_loop()
        with suppress(OSError):  # whoever asks the store hears of a name that nobody knows
            for *_, address in await loop.getaddrinfo(host, None, type=socket.SOCK_STREAM):
                if is_of_link(str(address[0])):
                    endpoint = f"the endpoint of the secret {self._access.secret!r}"
                    raise BucketRefusedError(leads_to_link(endpoint, str(address[0])))

    async def listed(self, url: BucketUrl) -> BucketListing:
        """The objects that a URL stands for. Raises BucketRefusedError or BucketAwayError."""
        pattern = url.pattern
        if not pattern.has_wildcards:
            return BucketListing((await self._looked_at(url.key),))
        looked: list[str] = []
        found = [each async for each in self._matches(url, pattern, looked)]
        found = await self._without_markers(found)
        try:
            listing = chosen(pattern, found)
        except ListingError as error:
            raise BucketRefusedError(str(error)) from None
        if not listing.objects:
            there = f"; there are objects such as {', '.join(looked)}" if looked else ""
            raise NoObjectError(f"there is no object {url.of(url.key)}{there}")
        return listing

    async def read(self, wanted: StoredObject, start: int, end: int) -> bytes:
        """A part of an object, which still is in that version. Raises BucketRefusedError or BucketAwayError."""
        options: dict[str, Any] = {"range": (start, end)}
        if wanted.version.startswith('"'):
            options["if_match"] = wanted.version
        what = self._name(wanted.key)
        try:
            answer = await obstore.get_async(self._store, wanted.key, options=options)  # type: ignore[arg-type]  # as above
            now = _object_of(answer.meta)
            if (now.version, now.size) != (wanted.version, wanted.size):  # not every store minds `If-Match`
                raise changed(what, wanted.version, now.version)
            data = bytes(await answer.bytes_async())
        except _ERRORS as error:
            raise bucket_fault(error, what, self._access.secret) from None
        if len(data) != end - start:
            raise BucketAwayError(f"{what} broke off after {len(data)} of {end - start} bytes")
        return data

    async def _looked_at(self, key: str) -> StoredObject:
        """An object by its key; it is asked for and not read, as stores give reasons to that alone."""
        try:
            answer = await obstore.get_async(self._store, key)
            return _object_of(answer.meta)
        except _ERRORS as error:
            raise bucket_fault(error, self._name(key), self._access.secret) from None

    async def _matches(self, url: BucketUrl, pattern: NamePattern, looked: list[str]) -> AsyncIterator[StoredObject]:
        """The objects with such a name; `looked` gets a few names of others."""
        seen = kept = 0
        try:
            async for some in obstore.list(self._store, pattern.fixed or None, chunk_size=_LISTED_AT_ONCE):
                seen += len(some)
                for each in map(_object_of, some):
                    if pattern.matches(each.key):
                        kept += 1
                        yield each
                    elif len(looked) < _NAMED:
                        looked.append(each.key)
                if seen > MOST_LOOKED_AT or kept > MOST_OBJECTS:
                    raise BucketRefusedError(
                        f"{url.of(url.key)} is {kept} of {seen} objects so far; at most {MOST_OBJECTS} of "
                        f"{MOST_LOOKED_AT} can be an input. Name fewer, or take several inputs"
                    )
        except _ERRORS as error:
            raise bucket_fault(error, url.of(url.key), self._access.secret) from None

    async def _without_markers(self, found: list[StoredObject]) -> list[StoredObject]:
        """The same without what the store lists, but does not have: consoles make such marks for directories."""
        turns = asyncio.Semaphore(_EMPTY_AT_ONCE)

        async def is_there(each: StoredObject) -> bool:
            if each.size:
                return True
            async with turns:
                try:
                    await obstore.head_async(self._store, each.key)
                except FileNotFoundError:
                    return False
                except _ERRORS as error:
                    raise bucket_fault(error, self._name(each.key), self._access.secret) from None
            return True

        there = await asyncio.gather(*map(is_there, found))
        return [each for each, stays in zip(found, there, strict=True) if stays]

    async def put(self, key: str, pieces: AsyncIterator[bytes] | bytes, length: int) -> None:
        """Have an object; one that is there is replaced. Raises BucketRefusedError, BucketAwayError, or OSError."""
        broken: list[OSError] = []

        async def watched(all_of_it: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
            try:
                async for piece in all_of_it:
                    yield piece
            except OSError as error:
                broken.append(error)  # the library would tell it as a fault of its own
                raise

        try:
            if isinstance(pieces, bytes):
                await obstore.put_async(self._store, key, pieces, use_multipart=False)
            else:
                await obstore.put_async(
                    self._store, key, watched(pieces), chunk_size=length, max_concurrency=PARTS_SENT_BESIDE
                )
        except Exception as error:
            if broken:
                raise broken[0] from None
            if not isinstance(error, _ERRORS):
                raise
            raise bucket_fault(error, self._name(key), self._access.secret) from None

    async def remove(self, key: str) -> None:
        """Have an object be there no more, if it is. Raises BucketRefusedError or BucketAwayError."""
        try:
            await obstore.delete_async(self._store, key)
        except FileNotFoundError:
            return
        except _ERRORS as error:
            raise bucket_fault(error, self._name(key), self._access.secret) from None

    def _name(self, key: str) -> str:
        return f"{self._access.scheme}{self._bucket}/{key}"


class BucketWriter:
    """Writes objects of one bucket: small ones at once, others in parts."""

    def __init__(self, bucket: ObjectBucket) -> None:
        self._bucket = bucket

    async def write(self, key: str, size: int, pieces: Callable[[int], AsyncIterator[bytes]]) -> None:
        """Have an object of such a size; `pieces` gives its bytes in pieces of a length. Raises as `put` does."""
        length = max(SENT_PART, -(-size // MOST_SENT_PARTS))
        if size <= SENT_PART:
            await self._bucket.put(key, b"".join([piece async for piece in pieces(length)]), length)
        else:
            await self._bucket.put(key, pieces(length), length)


def _s3_keys(access: StoreAccess) -> dict[str, Any]:
    given: dict[str, Any] = {"skip_signature": True}
    if access.key_id:
        given = {"access_key_id": access.key_id, "secret_access_key": access.key}
        given |= {"token": access.session} if access.session else {}
    given |= {"endpoint": access.endpoint} if access.endpoint else {}
    return {"region": access.region or "us-east-1", **given}


def _azure_keys(access: StoreAccess) -> dict[str, Any]:
    """Options of an account; the kind of what opens it is said, so that the library looks for nothing else."""
    if access.key:
        given = {"credential_type": "access_key", "account_key": access.key}
    else:
        given = {"credential_type": "sas_token", "sas_key": access.sas}
    given |= {"endpoint": access.endpoint} if access.endpoint else {}
    return {"account_name": access.account, **given}


def _is_endpoint(text: str) -> bool:
    """Whether a store may be there; the library fails without a word on others."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return False
    plain = text.isascii() and text.isprintable() and " " not in text and "@" not in parts.netloc and port != 0
    return plain and parts.scheme in {"http", "https"} and bool(parts.hostname) and not (parts.query or parts.fragment)


def _object_of(said: Any) -> StoredObject:  # noqa: ANN401 - the library's own
    version = said["e_tag"] or f"changed at {said['last_modified'].isoformat()}"
    if said["e_tag"] and not version.endswith('"'):
        version = f'"{version}"'  # so does Azure say it in lists, and with the quotes everywhere else
    return StoredObject(key=said["path"], size=said["size"], version=version[:LONGEST_OBJECT_VERSION])
