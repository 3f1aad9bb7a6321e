"""How an agent carries out orders to pull images, and what it tells of them."""

import asyncio
from contextlib import suppress

from agent.core.launching.handover import RegistryLogin
from agent.image_pulls import MOST_PULLS_WAITING, OrderedPulls
from agent.runtimes.runtime import Progress
from muster.domain.data.kept.pull import ImagePull, PulledHere, PullNews, PullStep
from muster.domain.fleet.secret import MAX_VALUE
from muster.domain.jobs.failure import ExecutionError, FailureKind
from muster.wire.data.image_pulls import image_pull_from_wire, image_pull_to_wire

APP = "team/app:1"
THERE = PulledHere(id="sha256:app", digest="sha256:dd", bytes=7)


class Engine:
    """A runtime that lets in who says the name `robot`."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def pull_image(self, image: str, login: RegistryLogin | None, progress: Progress) -> PulledHere:
        self.asked.append(image)
        progress(f"pulling {image}")
        if login is None or login.username != "robot":
            raise ExecutionError(FailureKind.IMAGE, "unauthorized")
        progress(f"pulling {image} 37 %")
        return THERE


async def told(runtime: object, *orders: ImagePull, ends: int) -> list[PullNews]:
    """What a node tells until so many orders have ended."""
    told_news: asyncio.Queue[PullNews] = asyncio.Queue()
    pulls = OrderedPulls([runtime], told_news.put_nowait)
    for order in orders:
        pulls.take(order)
    running = asyncio.create_task(pulls.run())
    news: list[PullNews] = []
    try:
        while sum(each.step is not PullStep.PULLING for each in news) < ends:
            news.append(await told_news.get())
        return news
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


async def test_how_far_a_pull_is_is_told_and_then_what_the_node_has() -> None:
    assert await told(Engine(), ImagePull(number="1", image=APP, username="robot", password="x"), ends=1) == [
        PullNews(number="1", step=PullStep.PULLING),
        PullNews(number="1", step=PullStep.PULLING, doing="37 %"),
        PullNews(number="1", step=PullStep.PULLED, pulled=THERE),
    ]


async def test_a_pull_that_fails_says_why_and_the_next_one_goes_on() -> None:
    engine = Engine()
    orders = (ImagePull(number="1", image=APP), ImagePull(number="2", image="team/b:1", username="robot"))
    news = await told(engine, *orders, ends=2)

    ends = [each for each in news if each.step is not PullStep.PULLING]
    assert [(each.number, each.step, each.why) for each in ends] == [
        ("1", PullStep.FAILED, "unauthorized"),
        ("2", PullStep.PULLED, ""),
    ]
    assert engine.asked == [APP, "team/b:1"]


async def test_a_node_without_an_engine_and_one_with_too_many_orders_say_so() -> None:
    orders = [ImagePull(number=str(number), image=APP) for number in range(1, MOST_PULLS_WAITING + 2)]
    news = await told(object(), *orders, ends=2)

    assert news[0].number == str(MOST_PULLS_WAITING + 1)
    assert news[0].why.startswith("16 images wait to be pulled onto it")
    assert (news[1].number, news[1].why) == ("1", "the node has no container engine")


def test_a_password_may_be_a_whole_file_of_keys() -> None:
    order = ImagePull(number="1", image=APP, username="_json_key", password="x" * MAX_VALUE)

    assert image_pull_from_wire(image_pull_to_wire(order)) == order


def test_an_order_keeps_its_password_to_itself() -> None:
    assert "hunter2" not in repr(ImagePull(number="1", image=APP, username="robot", password="hunter2"))
