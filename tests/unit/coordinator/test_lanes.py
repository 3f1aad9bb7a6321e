"""Large messages go out a few at a time, and who is slow holds up nobody."""

import asyncio

from coordinator.rpc.lanes import Lanes

LONG = 3600.0


async def test_so_many_are_on_their_way_at_a_time_and_each_has_its_turn() -> None:
    lanes, begun, done = Lanes(2, LONG), asyncio.Queue[int](), asyncio.Event()

    async def write() -> None:
        async with lanes.one():
            begun.put_nowait(lanes.free)
            await done.wait()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(4):
            tasks.create_task(write())
        assert [await begun.get(), await begun.get()] == [1, 0]
        assert begun.empty()
        done.set()
    assert begun.qsize() == 2
    assert lanes.free == 2


async def test_who_is_slow_goes_on_beside_the_others_and_leaves_no_more_room_than_there_was() -> None:
    lanes, done = Lanes(1, 0.0), asyncio.Event()

    async def be_slow() -> None:
        async with lanes.one():
            await done.wait()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(3):
            tasks.create_task(be_slow())
        async with lanes.one():
            done.set()
    assert lanes.free == 1
