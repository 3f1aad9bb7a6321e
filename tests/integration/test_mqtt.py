"""Events and states in a real broker, with TLS, passwords and an ACL by project."""

import asyncio
import re
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from console.events.mqtt.broker import Broker, BrokerPlace
from console.events.mqtt.states import StatePublisher
from console.events.notifier import held_outbox, notify
from console.events.notify_file import read_notify_file
from console.events.own_events import OwnEvents
from muster.client.client import Client
from tests.integration.brokers import PASSWORDS, PREFIX, Mosquitto, mosquitto
from tests.integration.fleet import running_fleet
from tests.integration.jobs import shell
from tests.integration.programs import ROOT
from tests.integration.secured import secured

pytestmark = pytest.mark.skipif(shutil.which("mosquitto") is None, reason="mosquitto is not installed")


def place(broker: Mosquitto) -> BrokerPlace:
    return BrokerPlace(
        host="127.0.0.1",
        port=broker.port,
        user="console",
        password=PASSWORDS["console"],
        prefix=PREFIX,
        authority=broker.authority,
    )


def written(directory: Path, broker: Mosquitto) -> Path:
    """A file that tells a console of the broker."""
    (directory / "password").write_text(PASSWORDS["console"])
    file = directory / "notify.toml"
    file.write_text(
        f'[mqtt]\nbroker = "mqtts://127.0.0.1:{broker.port}"\nuser = "console"\npassword_file = "password"\n'
        f'prefix = "{PREFIX}"\nauthority = "{broker.authority}"\ntelemetry = ["nodes"]\n'
    )
    return file


@asynccontextmanager
async def mirroring(directory: Path, broker: Mosquitto, client: Client) -> AsyncIterator[None]:
    """A fleet's events and states on their way to a broker."""
    settings = read_notify_file(written(directory, broker))
    with held_outbox(directory / "console") as outbox:
        async with asyncio.TaskGroup() as tasks:
            mirror = tasks.create_task(notify(settings, outbox, asked(client), OwnEvents()), name="mirror")
            yield
            mirror.cancel()


def asked(client: Client) -> Callable[[], Awaitable[Client]]:
    async def found() -> Client:
        return client

    return found


async def test_events_and_states_of_a_job_reach_the_broker(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, mosquitto(tmp_path) as broker:
        async with mirroring(tmp_path, broker, fleet.client), broker.reader("everything") as reader:
            await reader.until(lambda: "nodes/a/state" in reader.states)
            job = await fleet.run(shell("exit 3"))
            state = f"projects/default/jobs/{job.id}/state"
            await reader.until(lambda: reader.states.get(state, {}).get("phase") == "failed")
            await reader.until(lambda: reader.events and reader.events[-1][1]["type"] == "muster.job.failed")
            types = [event["type"] for topic, event in reader.events if topic == state.replace("/state", "/events")]
            assert (types[0], types[-1]) == ("muster.job.submitted", "muster.job.failed")
            await reader.until(lambda: "queue" in reader.states and "nodes/a/telemetry" in reader.states)
            assert reader.states["queue"] == {"jobs": 0, "gpus": 0, "pools": {}}
            assert reader.states["nodes/a/telemetry"]["host"]["memory_total"] > 0
            async with broker.reader("everything") as late:
                await late.until(lambda: {state, "nodes/a/state", "status"} <= late.retained)
                assert late.states["status"]["state"] == "here"
                assert late.events == []
                assert "nodes/a/telemetry" not in late.retained
        async with broker.reader("everything") as reader:
            await reader.until(lambda: reader.states.get("status") == {"state": "ended"})


async def test_a_reader_of_one_project_sees_no_other(tmp_path: Path) -> None:
    async with secured(tmp_path / "fleet") as fleet, mosquitto(tmp_path) as broker, fleet.client() as admin:
        for project in ("vision", "speech"):
            await admin.projects.add(project)
        async with (
            mirroring(tmp_path, broker, admin),
            broker.reader("everything") as everything,
            broker.reader("vision") as vision,
        ):
            await everything.until(lambda: "status" in everything.states)
            jobs = [
                await admin.jobs.submit(replace(shell("true", hold=True), project=project), queue_anyway=True)
                for project in ("speech", "vision")
            ]
            topics = [f"projects/{job.spec.project}/jobs/{job.id}" for job in jobs]
            await everything.until(lambda: {f"{topic}/state" for topic in topics} <= everything.states.keys())
            await everything.until(
                lambda: {f"{topic}/events" for topic in topics} <= {at for at, _ in everything.events}
            )
            await vision.until(lambda: f"{topics[1]}/state" in vision.states and vision.events)
            assert all(
                topic.startswith("projects/vision/") for topic in (*vision.states, *(at for at, _ in vision.events))
            )


async def test_states_are_there_again_when_the_broker_was_away(tmp_path: Path) -> None:
    async with (
        running_fleet(tmp_path, "a") as fleet,
        mosquitto(tmp_path) as broker,
        mirroring(tmp_path, broker, fleet.client),
    ):
        async with broker.reader("everything") as reader:
            await reader.until(lambda: "nodes/a/state" in reader.states)
        await broker.stop()
        job = await fleet.client.jobs.submit(shell("true", hold=True))
        await broker.start()
        async with broker.reader("everything") as reader:
            state = f"projects/default/jobs/{job.id}/state"
            await reader.until(lambda: {state, "nodes/a/state"} <= reader.states.keys())


async def test_a_job_that_was_deleted_while_nobody_looked_has_no_state_any_more(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, mosquitto(tmp_path) as server:
        broker = Broker(place(server), pauses=(0.1,))
        with held_outbox(tmp_path / "console") as outbox:
            states = StatePublisher(broker, outbox, asked(fleet.client), ended_for=0.0, look=0.2, again=0.1)
            gone = await fleet.client.jobs.submit(shell("true", hold=True))
            async with asyncio.TaskGroup() as tasks, server.reader("everything") as reader:
                running = [tasks.create_task(work, name="mirror") for work in (broker.run(), states.run())]
                topic = f"projects/default/jobs/{gone.id}/state"
                await reader.until(lambda: topic in reader.states)
                await fleet.client.jobs.stop(gone.id)
                await fleet.client.jobs.delete(gone.id)
                for each in running:
                    each.cancel()
            states = StatePublisher(broker, outbox, asked(fleet.client), ended_for=0.0, look=0.2, again=0.1)
            async with asyncio.TaskGroup() as tasks, server.reader("everything") as reader:
                running = [tasks.create_task(work, name="mirror") for work in (broker.run(), states.run())]
                await reader.until(lambda: "nodes/a/state" in reader.states and topic not in reader.states)
                for each in running:
                    each.cancel()


async def test_who_is_cancelled_in_the_moment_in_which_the_broker_answers_ends(tmp_path: Path) -> None:
    async with mosquitto(tmp_path) as server:
        broker = Broker(place(server))
        async with asyncio.TaskGroup() as tasks, server.reader("everything") as reader:
            running = tasks.create_task(broker.run(), name="broker")
            for number in range(50):
                publishing = tasks.create_task(_publish_for_ever(broker, f"nodes/{number}/state"), name="publishing")
                await reader.until(lambda number=number: f"nodes/{number}/state" in reader.states)
                publishing.cancel()
                await asyncio.wait([publishing])
            running.cancel()


async def _publish_for_ever(broker: Broker, topic: str) -> None:
    while (await broker.publish(topic, b"{}")).taken:
        pass


def test_the_settings_of_the_page_can_be_read(tmp_path: Path) -> None:
    [text] = re.findall(r"<!-- mqtt -->\n```toml\n(.*?)```", (ROOT / "docs" / "mqtt.md").read_text(), re.DOTALL)
    (tmp_path / "notify.toml").write_text(text)
    (tmp_path / "broker.password").write_text("x\n")
    settings = read_notify_file(tmp_path / "notify.toml")
    assert settings.broker is not None
    assert (settings.broker.port, settings.broker.tls, settings.broker.prefix) == (8883, True, "muster/v1/site")


# The library leaves the socket of its last connection to the garbage collector where that was refused.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_a_wrong_password_publishes_nothing_and_is_tried_again(tmp_path: Path) -> None:
    async with mosquitto(tmp_path) as server:
        broker = Broker(replace(place(server), password="wrong"), pauses=(0.05,), patience=1.0)
        async with asyncio.TaskGroup() as tasks:
            running = tasks.create_task(broker.run(), name="broker")
            answer = await broker.publish("status", b"{}")
            running.cancel()
    assert (answer.taken, broker.connections) == (False, 0)


async def test_a_console_that_is_killed_is_gone_for_all_readers(tmp_path: Path) -> None:
    async with mosquitto(tmp_path) as server, server.reader("everything") as reader:
        (tmp_path / "token").write_text("none")
        options = {"--notify": written(tmp_path, server), "--token-file": tmp_path / "token", "--state": tmp_path / "s"}
        program = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "console", "--coordinator", "127.0.0.1:1", "--listen", "127.0.0.1:0"),
            *(str(word) for option in options.items() for word in option),
            cwd=ROOT,
            stderr=asyncio.subprocess.DEVNULL,
        )
        await reader.until(lambda: reader.states.get("status", {}).get("state") == "here")
        program.kill()
        await program.wait()
        await reader.until(lambda: reader.states["status"] == {"state": "gone"})


async def test_a_job_that_has_ended_has_a_state_for_a_while(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, mosquitto(tmp_path) as server:
        broker = Broker(place(server), pauses=(0.1,))
        job = await fleet.client.jobs.submit(shell("true", hold=True))
        topic = f"projects/default/jobs/{job.id}/state"
        with held_outbox(tmp_path / "console") as outbox:
            states = StatePublisher(broker, outbox, asked(fleet.client), ended_for=0.5, look=0.1)
            async with asyncio.TaskGroup() as tasks, server.reader("everything") as reader:
                running = [tasks.create_task(work, name="mirror") for work in (broker.run(), states.run())]
                await reader.until(lambda: topic in reader.states)
                await fleet.client.jobs.stop(job.id)
                states.changed([happened async for happened in fleet.client.events.all()])
                await reader.until(lambda: reader.states.get(topic, {}).get("phase") == "stopped")
                await reader.until(lambda: topic not in reader.states)
                for each in running:
                    each.cancel()
