"""A real broker of MQTT, mosquitto, with TLS, passwords and an ACL; and who reads from it."""

import asyncio
import json
import shutil
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiomqtt

from tests.integration.attaching import free_port
from tests.integration.consoles import certified

PREFIX = "muster/v1/site"
ACL = f"""
user console
topic readwrite {PREFIX}/#

user vision
topic read {PREFIX}/projects/vision/#

user everything
topic read {PREFIX}/#
"""
PASSWORDS = {"console": "of the console", "vision": "of vision", "everything": "of everything"}
HEARD_WITHIN = 30.0


@dataclass(kw_only=True)
class Mosquitto:
    """A broker that can be stopped and started again."""

    directory: Path
    port: int
    authority: Path
    program: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it, and wait until it listens."""
        words = (shutil.which("mosquitto") or "mosquitto", "-c", str(self.directory / "mosquitto.conf"), "-v")
        self.program = await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        assert self.program.stderr is not None
        while b"running" not in (line := await self.program.stderr.readline()):
            assert line, "the broker has ended"

    async def stop(self) -> None:
        """End it."""
        assert self.program is not None
        self.program.kill()
        await self.program.communicate()

    @asynccontextmanager
    async def reader(self, user: str, topic: str = "#") -> AsyncIterator["Reader"]:
        """Somebody who reads what that user may."""
        trusted = ssl.create_default_context(cafile=self.authority)
        client = aiomqtt.Client(
            "127.0.0.1", self.port, username=user, password=PASSWORDS[user], tls_context=trusted, timeout=HEARD_WITHIN
        )
        async with client, asyncio.TaskGroup() as tasks:
            await client.subscribe(topic, qos=1)
            found = Reader()
            reading = tasks.create_task(found.read(client), name=f"reader {user}")
            yield found
            reading.cancel()


@dataclass(kw_only=True)
class Reader:
    """What somebody has read."""

    states: dict[str, Any] = field(default_factory=dict)
    """The last message of each topic, below the prefix; an empty one takes it away."""
    events: list[tuple[str, Any]] = field(default_factory=list)
    retained: set[str] = field(default_factory=set)
    """Topics whose message was there before the reader came."""
    heard: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def read(self, client: aiomqtt.Client) -> None:
        """Read until cancelled."""
        async for message in client.messages:
            topic = message.topic.value.removeprefix(f"{PREFIX}/")
            payload = json.loads(message.payload) if message.payload else None
            async with self.heard:
                if message.retain:
                    self.retained.add(topic)
                if topic.endswith("/events"):
                    self.events.append((topic, payload))
                elif payload is None:
                    self.states.pop(topic, None)
                else:
                    self.states[topic] = payload
                self.heard.notify_all()

    async def until(self, holds: Any) -> None:
        """Wait until something holds of what was read."""
        async with asyncio.timeout(HEARD_WITHIN), self.heard:
            await self.heard.wait_for(holds)


@asynccontextmanager
async def mosquitto(directory: Path) -> AsyncIterator[Mosquitto]:
    """A broker on loopback."""
    files, port = certified(directory), free_port()
    passwords = directory / "passwords"
    passwords.touch(0o600)
    for user, password in PASSWORDS.items():
        words = ("mosquitto_passwd", "-b", str(passwords), user, password)
        assert await (await asyncio.create_subprocess_exec(*words)).wait() == 0
    (directory / "acl").write_text(ACL)
    (directory / "mosquitto.conf").write_text(
        f"user root\nlistener {port} 127.0.0.1\ncertfile {files['cert']}\nkeyfile {files['key']}\n"
        f"allow_anonymous false\npassword_file {passwords}\nacl_file {directory / 'acl'}\npersistence false\n"
    )
    broker = Mosquitto(directory=directory, port=port, authority=files["authority"])
    await broker.start()
    try:
        yield broker
    finally:
        await broker.stop()
