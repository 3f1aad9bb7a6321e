"""From the end of a job to its receiver, with a real coordinator and console, also when the console is killed."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

from console.events.notifier import send_test
from console.events.notify_file import read_notify_file
from tests.integration.attaching import free_port
from tests.integration.fleet import SECRET, running_fleet
from tests.integration.jobs import shell
from tests.integration.programs import ROOT
from tests.integration.receivers import HANGS, Received, Receiver, receiver

PAGE = ROOT / "docs" / "notifications.md"
KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def wanted(directory: Path, hook: Receiver) -> list[str]:
    """Options of a console that tells a receiver of jobs that have ended well or badly."""
    (directory / "key").write_text(KEY)
    (directory / "token").write_text(SECRET)
    (directory / "notify.toml").write_text(
        '[[subscription]]\nname = "ends"\nevents = ["muster.job.failed", "muster.job.succeeded"]\n'
        f'webhook = "{hook.url}"\nsecret_files = ["key"]\n[web]\nallow = ["127.0.0.1"]\n'
    )
    files = {"--notify": "notify.toml", "--token-file": "token", "--state": "console"}
    return [word for option, name in files.items() for word in (option, str(directory / name))]


@asynccontextmanager
async def console_program(coordinator: str, *options: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A console that follows events, killed at the end."""
    words = ("--coordinator", coordinator, "--listen", "127.0.0.1:0", *options)
    program = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "console", *words, cwd=ROOT, stderr=asyncio.subprocess.PIPE
    )
    try:
        assert program.stderr is not None
        while b"events are followed" not in (line := await program.stderr.readline()):
            assert line, "it has ended"
        yield program
    finally:
        program.kill()
        await program.communicate()


async def listening(port: int) -> None:
    """Wait until somebody listens at a port."""
    async with asyncio.timeout(30):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except ConnectionRefusedError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return


def told(request: Received) -> tuple[str, str]:
    event = json.loads(request.body)
    assert request.headers["webhook-id"] == event["id"]
    return event["subject"], event["type"]


async def test_a_killed_console_loses_no_event_and_gives_none_another_id(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, receiver(HANGS) as hook:
        options = wanted(tmp_path, hook)
        old = await fleet.run(shell("true"))
        async with console_program(fleet.address, *options):
            failed = await fleet.run(shell("exit 3"))
            await hook.until(1)
        meanwhile = await fleet.run(shell("true"))
        async with console_program(fleet.address, *options):
            received = await hook.until(3)
    assert [told(each) for each in received] == [
        (f"jobs/{failed.id}", "muster.job.failed"),
        (f"jobs/{failed.id}", "muster.job.failed"),
        (f"jobs/{meanwhile.id}", "muster.job.succeeded"),
    ]
    assert received[0].headers["webhook-id"] == received[1].headers["webhook-id"]
    assert old.id not in {told(each)[0] for each in received}


async def test_events_go_on_after_a_restart_of_the_coordinator(tmp_path: Path) -> None:
    async with (
        running_fleet(tmp_path, "a") as fleet,
        receiver() as hook,
        console_program(fleet.address, *wanted(tmp_path, hook)),
    ):
        await fleet.run(shell("true"))
        await hook.until(1)
        await fleet.restart_coordinator()
        failed = await fleet.run(shell("exit 3"))
        received = await hook.until(2)
    assert told(received[1]) == (f"jobs/{failed.id}", "muster.job.failed")
    assert len(received) == 2


async def test_the_receiver_of_the_page_takes_what_is_genuine_and_nothing_else(tmp_path: Path) -> None:
    [program] = re.findall(r"<!-- receiver -->\n```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    port = free_port()
    receiving = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program),
        env={**os.environ, "WEBHOOK_KEY": KEY, "PORT": str(port)},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await listening(port)
        (tmp_path / "key").write_text(KEY)
        hook = f'[[subscription]]\nname = "s"\nwebhook = "http://127.0.0.1:{port}"\nsecret_files = ["key"]\n'
        (tmp_path / "notify.toml").write_text(hook + '[web]\nallow = ["127.0.0.1"]\n')
        genuine = await send_test(read_notify_file(tmp_path / "notify.toml"), "s", datetime.now(UTC))
        (tmp_path / "key").write_text("whsec_" + KEY.removeprefix("whsec_")[::-1])
        forged = await send_test(read_notify_file(tmp_path / "notify.toml"), "s", datetime.now(UTC))
        assert receiving.stdout is not None
        said = await receiving.stdout.readline()
    finally:
        receiving.kill()
        await receiving.communicate()
    assert (genuine.taken, forged.taken, forged.told) == (True, False, "401 Unauthorized")
    assert said == b"muster.notification.test notifications/s this is a test of the subscription s\n"


def test_the_subscriptions_of_the_page_can_be_read(tmp_path: Path) -> None:
    [text] = re.findall(r"<!-- subscriptions -->\n```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "notify.toml").write_text(text)
    for name, content in {"pager.key": KEY, "slack.url": "https://hooks.slack.com/x", "mail.password": "x"}.items():
        (tmp_path / name).write_text(content)
    settings = read_notify_file(tmp_path / "notify.toml")
    assert [each.name for each in settings.subscriptions] == ["pager", "vision-chat", "ada"]


async def test_the_console_sends_a_test_and_says_how_it_went(tmp_path: Path) -> None:
    async with receiver("200 OK", "500 Oh") as hook:
        options = wanted(tmp_path, hook)
        answers = []
        for _ in range(2):
            program = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "console",
                *options,
                "--notify-test",
                "ends",
                cwd=ROOT,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            out, problem = await program.communicate()
            answers.append((program.returncode, (out + problem).decode()))
    assert answers[0] == (0, "the target of ends has taken the test: 200 OK\n")
    assert answers[1][0] != 0
    assert "the target of ends has not taken the test: 500 Oh" in answers[1][1]
