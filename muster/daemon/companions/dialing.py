"""The line of a program beside the coordinator: dialled for ever, as the coordinator may be away while work goes on."""

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from muster.daemon.companions.lines import LONGEST_COMPANION_LINE, CompanionTalk

log = logging.getLogger(__name__)

DIAL_PAUSE = 0.5
"""Seconds between two attempts to reach the coordinator."""

COMPANION_NEWS_PAUSE = 2.0
"""Seconds between two reports of what shall not be told at once."""

_Heard = TypeVar("_Heard")
_Told = TypeVar("_Told")
_Tells_co = TypeVar("_Tells_co", covariant=True)


class CompanionNews(Protocol[_Tells_co]):
    """What the coordinator is told."""

    def hello(self) -> _Tells_co:
        """The first line on a new connection; everything else counts as not told yet."""
        ...

    def take(self) -> Sequence[_Tells_co]:
        """What is to be told now, or some of it; nothing: all is told."""
        ...


async def talk_for_ever(
    directory: Path,
    talk: CompanionTalk[_Heard, _Told],
    news: CompanionNews[_Told],
    stirred: asyncio.Event,
    hear: Callable[[_Heard], Awaitable[None]],
) -> None:
    """Keep a line to the coordinator whose state directory that is, until cancelled.

    `stirred` says that there is news which shall not wait; `hear` takes in what the coordinator says.
    """
    away = False
    while True:
        try:
            reader, writer = await _dialled(directory, talk.socket)
        except OSError as error:
            if not away:
                log.warning("the coordinator is away; work goes on", extra={"cause": error.strerror or str(error)})
            away = True
        else:
            try:
                log.info("the coordinator is there")
                away = False
                await _talk(reader, writer, talk, news, stirred, hear)
            finally:
                writer.close()
        await asyncio.sleep(DIAL_PAUSE)


async def _dialled(directory: Path, socket: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    parent = os.open(directory, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        where = f"/proc/self/fd/{parent}/{socket}"  # no path is too long for that
        return await asyncio.open_unix_connection(where, limit=LONGEST_COMPANION_LINE)
    finally:
        os.close(parent)


async def _talk(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    talk: CompanionTalk[_Heard, _Told],
    news: CompanionNews[_Told],
    stirred: asyncio.Event,
    hear: Callable[[_Heard], Awaitable[None]],
) -> None:
    """One connection, until it ends."""
    telling = asyncio.create_task(_tell(writer, talk, news, stirred), name="tell the coordinator")
    try:
        while line := await reader.readline():
            message = talk.read(line)
            if message is not None:
                await hear(message)
    except (OSError, ValueError) as error:
        log.warning("the line to the coordinator is broken", extra={"cause": str(error)})
    finally:
        telling.cancel()
        await asyncio.wait({telling})


async def _tell(
    writer: asyncio.StreamWriter,
    talk: CompanionTalk[_Heard, _Told],
    news: CompanionNews[_Told],
    stirred: asyncio.Event,
) -> None:
    try:
        writer.write(talk.line_of(news.hello()))
        while True:
            stirred.clear()
            while told := news.take():
                writer.write(b"".join(map(talk.line_of, told)))
                await writer.drain()
            try:
                async with asyncio.timeout(COMPANION_NEWS_PAUSE):
                    await stirred.wait()
            except TimeoutError:
                continue
    except OSError:
        return  # the reader hears of it, too
