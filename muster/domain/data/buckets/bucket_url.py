"""URLs of objects in object stores: `s3://BUCKET/KEY` or `az://CONTAINER/NAME`, where the key may have wildcards."""

import re
from dataclasses import dataclass

from muster.domain.data.job_input import S3_SCHEME
from muster.domain.data.pattern import NamePattern, name_pattern

BUCKET_NAME = r"[A-Za-z0-9][A-Za-z0-9._-]{2,62}"
"""The pattern of names of buckets."""

_URL = re.compile(rf"(?P<scheme>s3://|az://)(?P<bucket>{BUCKET_NAME})/(?P<key>.+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketUrl:
    """Objects of a bucket that a URL names."""

    scheme: str = S3_SCHEME
    bucket: str
    """The bucket, or the container of Azure."""
    key: str
    """The key of the objects, in which `*` and `?` are wildcards; it is taken as it stands, without any %20."""

    @property
    def pattern(self) -> NamePattern:
        """What the key stands for; raises NamePatternError."""
        return name_pattern(self.key)

    def of(self, key: str) -> str:
        """The URL of one object of the bucket."""
        return f"{self.scheme}{self.bucket}/{key}"


def read_bucket_url(url: str) -> BucketUrl | None:
    """What a URL names; None: no objects of a store."""
    found = _URL.fullmatch(url)
    return None if found is None else BucketUrl(**found.groupdict())
