"""The relay's line to the coordinator: dialled for ever, as the coordinator may be away while streams go on."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from coordinator.relay.messages import (
    LONGEST_RELAY_LINE,
    RELAY_SOCKET,
    DeskMessage,
    RelayHello,
    RelayLineError,
    RelayMessage,
    desk_message,
    line_of,
)

log = logging.getLogger(__name__)

DIAL_PAUSE = 0.5
"""Seconds between two attempts to reach the coordinator."""

RELAY_NEWS_PAUSE = 2.0
"""Seconds between two reports of bytes that were moved."""

NEWS_AT_ONCE = 500
"""Attachments in one report."""


class RelayNews(Protocol):
    """What the coordinator is told."""

    def hello(self) -> RelayHello:
        """The first line on a new connection; everything else counts as not told yet."""
        ...

    def take(self, most: int) -> list[RelayMessage]:
        """What is to be told now, at most so much of it."""
        ...


async def talk_for_ever(
    directory: Path, news: RelayNews, stirred: asyncio.Event, hear: Callable[[DeskMessage], Awaitable[None]]
) -> None:
    """Keep a line to the coordinator whose state directory that is, until cancelled.

    `stirred` says that there is news which shall not wait; `hear` takes in what the coordinator says.
    """
    away = False
    while True:
        try:
            reader, writer = await _dialled(directory)
        except OSError as error:
            if not away:
                log.warning("the coordinator is away; streams go on", extra={"cause": error.strerror or str(error)})
            away = True
        else:
            try:
                log.info("the coordinator is there")
                away = False
                await _talk(reader, writer, news, stirred, hear)
            finally:
                writer.close()
        await asyncio.sleep(DIAL_PAUSE)


async def _dialled(directory: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parent = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        where = f"/proc/self/fd/{parent}/{RELAY_SOCKET}"  # no path is too long for that
        return await asyncio.open_unix_connection(where, limit=LONGEST_RELAY_LINE)
    finally:
        os.close(parent)


async def _talk(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    news: RelayNews,
    stirred: asyncio.Event,
    hear: Callable[[DeskMessage], Awaitable[None]],
) -> None:
    """One connection, until it ends."""
    telling = asyncio.create_task(_tell(writer, news, stirred), name="tell the coordinator")
    try:
        while line := await reader.readline():
            message = desk_message(line)
            if message is not None:
                await hear(message)
    except (OSError, RelayLineError, ValueError) as error:
        log.warning("the line to the coordinator is broken", extra={"cause": str(error)})
    finally:
        telling.cancel()
        await asyncio.wait({telling})


async def _tell(writer: asyncio.StreamWriter, news: RelayNews, stirred: asyncio.Event) -> None:
    try:
        writer.write(line_of(news.hello()))
        while True:
            stirred.clear()
            while told := news.take(NEWS_AT_ONCE):
                writer.write(b"".join(map(line_of, told)))
                await writer.drain()
            try:
                async with asyncio.timeout(RELAY_NEWS_PAUSE):
                    await stirred.wait()
            except TimeoutError:
                continue
    except OSError:
        return  # the reader hears of it, too
