"""What many streams leave behind is given back until no more of them end; what few leave is not."""

import asyncio

from coordinator.tuning.memory import Leftovers


async def test_memory_is_given_back_after_many_streams_and_again_after_those_that_end_meanwhile() -> None:
    given_back, loop = asyncio.Queue[str](), asyncio.get_running_loop()

    def give_back() -> None:
        loop.call_soon_threadsafe(given_back.put_nowait, "all")

    leftovers = Leftovers(give_back, many=2, later=0.0)
    leftovers.one_more()
    leftovers.one_more()
    leftovers.one_more()
    assert [await given_back.get(), await given_back.get()] == ["all", "all"]
    leftovers.one_more()
    leftovers.one_more()
    assert await given_back.get() == "all"
    assert given_back.empty()
