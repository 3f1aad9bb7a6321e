"""Which image a node runs after it was found out for the job, from values alone."""

import pytest

from agent.core.containers.spec import Image
from agent.runtimes.docker.images.agreement import is_agreed_on, is_same, own
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.domain.jobs.image import FoundImage
from muster.domain.jobs.job import PullPolicy, Role

ONE, TWO = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"


@pytest.mark.parametrize(
    ("image", "pull", "agreed"),
    [
        ("team/app", PullPolicy.MISSING, True),
        ("team/app:1", PullPolicy.ALWAYS, True),
        ("team/app:1", PullPolicy.NEVER, False),
        (f"team/app@{ONE}", PullPolicy.MISSING, False),
        (f"team/app:1@{ONE}", PullPolicy.ALWAYS, False),
    ],
)
def test_the_ranks_agree_where_a_name_may_mean_several_images(image: str, pull: PullPolicy, agreed: bool) -> None:
    assert is_agreed_on(Role(image=image, pull=pull)) is agreed


@pytest.mark.parametrize(
    ("here", "found", "same"),
    [
        (Image(id=ONE), FoundImage(image="app", id=ONE), True),
        (Image(id=TWO), FoundImage(image="app", id=ONE), False),
        (Image(id=TWO, known_as=(f"app@{ONE}",)), FoundImage(image="app", digest=ONE), True),
        (Image(id=ONE), FoundImage(image="app", digest=ONE), False),
        (Image(id=ONE), FoundImage(image="app", digest=TWO, id=ONE), True),
    ],
)
def test_an_image_is_the_one_by_its_digest_or_by_its_id(here: Image, found: FoundImage, same: bool) -> None:
    assert is_same(here, found) is same


def test_of_an_image_from_no_registry_each_node_runs_its_own() -> None:
    found, mine = FoundImage(image="app", id=ONE), Image(id=TWO, known_as=(f"elsewhere.example.org/app@{TWO}",))
    assert own(found, mine) == mine


@pytest.mark.parametrize(
    ("here", "words"),
    [(None, "has none"), (Image(id=TWO, known_as=(f"app@{TWO}",)), "has one from a registry")],
)
def test_a_node_without_its_own_says_so(here: Image | None, words: str) -> None:
    with pytest.raises(ExecutionError, match=words) as caught:
        own(FoundImage(image="app", id=ONE), here)
    assert caught.value.kind is FailureKind.IMAGE
