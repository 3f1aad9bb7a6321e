"""Hypothesis strategies for volumes and inputs as they travel."""

from base64 import b64encode
from datetime import UTC, datetime

from hypothesis import strategies as st

from muster.domain.data.job_input import FoundInput, JobInput
from muster.domain.data.job_source import InputTree
from muster.domain.data.pattern import InputLayout
from muster.domain.data.volume import (
    KeptVolume,
    KeptVolumeNews,
    KeptVolumeView,
    RemovalOutcome,
    RemovedVolume,
    Volume,
    VolumeId,
    VolumeKeep,
    VolumeRemoval,
)
from muster.domain.jobs.image import FoundImage, ImagePass

_sizes = st.none() | st.integers(0, 2**63 - 1)
volumes = st.builds(
    Volume,
    name=st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True),
    path=st.none() | st.from_regex(r"/[a-z]{1,8}", fullmatch=True),
    size=_sizes,
    tmpfs=_sizes,
    keep=st.sampled_from(VolumeKeep),
    writable=st.booleans(),
)
_names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True)
_volume_ids = st.builds(VolumeId, project=_names, name=_names)
_numbers = st.from_regex(r"[1-9][0-9]{0,5}", fullmatch=True)
_moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - as hypothesis wants them
kept_volumes = st.builds(KeptVolume, id=_volume_ids, bytes=st.integers(0, 2**63 - 1), used_at=_moments)
kept_volume_news = st.builds(
    KeptVolumeNews,
    volumes=st.lists(kept_volumes, max_size=3).map(tuple),
    gone=st.lists(_volume_ids, max_size=3).map(tuple),
)
volume_removals = st.builds(VolumeRemoval, number=_numbers, volume=_volume_ids)
removed_volumes = st.builds(
    RemovedVolume, number=_numbers, outcome=st.sampled_from(RemovalOutcome), why=st.text(max_size=20)
)
volume_views = st.builds(
    KeptVolumeView,
    node=_names,
    project=_names,
    name=_names,
    bytes=st.integers(0, 2**63 - 1),
    used_at=_moments,
    jobs=st.lists(_names, max_size=3).map(tuple),
    connected=st.booleans(),
)
digests = st.from_regex(r"[0-9a-f]{64}", fullmatch=True)
urls = st.from_regex(r"https?://[a-z]{1,8}/[a-z]{1,8}", fullmatch=True)
_trees = st.builds(
    InputTree,
    tree=digests,
    size=st.integers(1, 64 * 1024 * 1024),
    below=st.just("") | st.from_regex(r"[a-z]{1,8}-[0-9]{1,4}", fullmatch=True),
)
_sources = st.builds(
    JobInput,
    name=st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True),
    source=st.from_regex(r"job:[a-z0-9]{8}/(\*|[a-z]{1,8}-[1-9])", fullmatch=True),
    only=st.lists(st.from_regex(r"[a-z]{1,8}/\*\*", fullmatch=True), max_size=2).map(tuple),
    trees=st.lists(_trees, max_size=2).map(tuple),
    split=st.booleans(),
)
_objects = st.builds(
    JobInput,
    name=st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True),
    url=st.from_regex(r"s3://[a-z]{3,8}/[a-z]{1,8}(/\*\.tar)?", fullmatch=True),
    secret=st.just("") | st.from_regex(r"[a-z]{1,8}", fullmatch=True),
    split=st.booleans(),
    layout=st.sampled_from(InputLayout),
)
inputs = (
    _sources
    | _objects
    | st.builds(
        JobInput,
        name=st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True),
        url=urls,
        path=st.none() | st.from_regex(r"/[a-z]{1,8}", fullmatch=True),
        sha256=st.just("") | digests,
    )
)
found_inputs = st.builds(
    FoundInput, url=urls, size=st.integers(0, 2**62), sha256=digests, version=st.just("") | st.just('"1"')
) | st.builds(
    FoundInput,
    url=st.from_regex(r"([a-z]{1,8}@)?s3://[a-z]{3,8}/[a-z]{1,8}", fullmatch=True),
    size=st.integers(0, 2**62),
    sha256=digests,
    listing=st.binary(max_size=20).map(lambda form: b64encode(form).decode()),
)
_image_digests = digests.map("sha256:{}".format)
found_images = st.builds(
    FoundImage, image=st.from_regex(r"[a-z]{1,8}/[a-z]{1,8}:[0-9]", fullmatch=True), digest=_image_digests
) | st.builds(FoundImage, image=st.just("app"), digest=st.just("") | _image_digests, id=_image_digests)
image_passes = st.builds(ImagePass, found=st.none() | found_images, finds=st.booleans())
