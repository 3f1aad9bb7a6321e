"""Hypothesis strategies for images of nodes as they travel."""

from datetime import UTC, datetime

from hypothesis import strategies as st

from muster.domain.data.kept.image import (
    ClearedImages,
    ClearOutcome,
    ImageClearance,
    ImageFate,
    ImageNews,
    ImageView,
    ToldImage,
)
from muster.domain.data.kept.pull import ImagePull, NodePull, PulledHere, PullNews, PullStep, PullView

_ids = st.from_regex(r"sha256:[0-9a-f]{8}", fullmatch=True)
_image_names = st.from_regex(r"[a-z]{1,8}/[a-z]{1,8}(:[0-9]|@sha256:[0-9a-f]{8})", fullmatch=True)
_several = st.lists(_image_names, max_size=3).map(tuple)
_numbers = st.from_regex(r"[1-9][0-9]{0,5}", fullmatch=True)
_nodes = st.from_regex(r"[a-z0-9]{1,8}", fullmatch=True)
_sizes = st.integers(0, 2**63 - 1)
_moments = st.datetimes(datetime(1971, 1, 1), datetime(2100, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 - as hypothesis wants them

told_images = st.builds(ToldImage, id=_ids, names=_several, bytes=_sizes, used_at=_moments)
image_news = st.builds(
    ImageNews, images=st.lists(told_images, max_size=3).map(tuple), gone=st.lists(_ids, max_size=3).map(tuple)
)
image_clearances = st.builds(ImageClearance, number=_numbers, images=_several)
image_fates = st.builds(
    ImageFate, image=_image_names, outcome=st.sampled_from(ClearOutcome), bytes=_sizes, why=st.text(max_size=20)
)
cleared_images = st.builds(ClearedImages, number=_numbers, fates=st.lists(image_fates, max_size=3).map(tuple))
image_views = st.builds(
    ImageView,
    node=_nodes,
    id=_ids,
    names=_several,
    bytes=_sizes,
    used_at=_moments,
    jobs=st.lists(_nodes, max_size=3).map(tuple),
    connected=st.booleans(),
)

_words = st.text(max_size=20)
_pulled_here = st.builds(PulledHere, id=_ids, digest=_ids, bytes=_sizes)
image_pulls = st.builds(ImagePull, number=_numbers, image=_image_names, username=_words, password=_words)
pull_news = st.builds(
    PullNews,
    number=_numbers,
    step=st.sampled_from(PullStep),
    doing=_words,
    why=_words,
    pulled=st.none() | _pulled_here,
)
node_pulls = st.builds(
    NodePull,
    node=_nodes,
    step=st.sampled_from(PullStep),
    doing=_words,
    why=_words,
    id=st.just("") | _ids,
    digest=st.just("") | _ids,
    bytes=_sizes,
)
pull_views = st.builds(
    PullView,
    id=_numbers,
    image=_image_names,
    revision=st.integers(0, 2**63 - 1),
    nodes=st.lists(node_pulls, max_size=3).map(tuple),
)
