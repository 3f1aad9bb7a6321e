"""Hypothesis strategies for volumes and inputs as they travel."""

from base64 import b64encode

from hypothesis import strategies as st

from muster.domain.data.job_input import FoundInput, JobInput
from muster.domain.data.job_source import InputTree
from muster.domain.data.volume import Volume, VolumeKeep

_sizes = st.none() | st.integers(0, 2**63 - 1)
volumes = st.builds(
    Volume,
    name=st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True),
    path=st.none() | st.from_regex(r"/[a-z]{1,8}", fullmatch=True),
    size=_sizes,
    tmpfs=_sizes,
    keep=st.sampled_from(VolumeKeep),
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
)
_objects = st.builds(
    JobInput,
    name=st.from_regex(r"[a-z0-9]([a-z0-9-]{0,8}[a-z0-9])?", fullmatch=True),
    url=st.from_regex(r"s3://[a-z]{3,8}/[a-z]{1,8}(/\*\.tar)?", fullmatch=True),
    secret=st.just("") | st.from_regex(r"[a-z]{1,8}", fullmatch=True),
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
