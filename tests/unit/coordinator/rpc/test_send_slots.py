"""Large messages go out a few at a time, and who is slow holds up nobody."""

import asyncio

from coordinator.rpc.agents.send_slots import Lanes

LONG = 3600.0


async def test_so_many_are_on_their_way_at_a_time_and_each_has_its_turn() -> None:
    lanes, begun, done = Lanes(2, LONG), asyncio.Queue[int](), asyncio.Event()

    async def write(number: int) -> None:
        async with lanes.one():
            begun.put_nowait(number)
            await done.wait()

    async with asyncio.TaskGroup() as tasks:
        for number in range(4):
            tasks.create_task(write(number))
        assert [await begun.get(), await begun.get()] == [0, 1]
        assert begun.empty()
        done.set()
    assert [begun.get_nowait(), begun.get_nowait()] == [2, 3]


async def test_who_is_slow_goes_on_beside_the_others_and_leaves_no_more_room_than_there_was() -> None:
    lanes, begun, done = Lanes(1, 0.0), asyncio.Queue[int](), asyncio.Event()

    async def write(number: int) -> None:
        async with lanes.one():
            begun.put_nowait(number)
            await done.wait()

    async with asyncio.TaskGroup() as tasks:
        for number in range(3):
            tasks.create_task(write(number))
        assert [await begun.get() for _ in range(3)] == [0, 1, 2]
        done.set()
    done.clear()
    async with asyncio.TaskGroup() as tasks:
        for number in range(3):
            tasks.create_task(write(number))
        await asyncio.sleep(0)  # each has had one turn, and nobody has been slow yet
        assert begun.qsize() == 1
        done.set()
