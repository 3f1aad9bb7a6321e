"""Watch one training in every way that there is, on this machine alone.

A job of three ranks is submitted with curl. Its loss is watched as server-sent events, and drawn in the terminal. Its
events come by a signed webhook, which is verified, and over MQTT. Prometheus scrapes what became of it.

Run `python3 examples/observed/observe.py`; it needs muster, curl, mosquitto, mosquitto_sub and prometheus. What it
starts ends with it. It exits with 0 if all of them have told the same.
"""

import argparse
import base64
import hashlib
import hmac
import json
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TypeVar

HERE = Path(__file__).parent
NEEDED = {
    "muster": "this project",
    "muster-console": "this project",
    "curl": "curl",
    "mosquitto": "mosquitto",
    "mosquitto_sub": "mosquitto-clients",
    "prometheus": "prometheus",
}
"""Programs, and the Debian package of each."""
NAME = "observed"
PATIENCE = 120.0
"""Seconds for each thing that is waited for."""
CLOCKS_DIFFER = 300
"""Seconds by which a webhook may be older or newer than now."""
RANKS = 3
EPOCHS = 40
"""Points that each rank prints."""
FILES = ("train.py", "digits.txt")
"""What comes along with the job."""

Found = TypeVar("Found")


def main() -> int:
    """Start everything, submit, watch, compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath), "/usr/sbin"))
    os.environ["PATH"] = path
    missing = {program: package for program, package in NEEDED.items() if shutil.which(program) is None}
    if missing:
        wanted = ", ".join(f"{program} (of {package})" for program, package in missing.items())
        print(f"these programs are not here: {wanted}", file=sys.stderr)
        return 2
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="muster-observed-") as directory, ExitStack() as stack:
        return observe(Observatory(Path(directory), stack))


def observe(site: "Observatory") -> int:
    """Have one job run, and print what each way of watching it has told."""
    site.start_fleet()
    broker, listener = site.start_broker()
    receiver = site.start_receiver()
    site.start_console(broker, receiver)
    prometheus = site.start_prometheus()

    job = site.submit()
    live = site.watch(job)
    site.muster("wait", job)
    site.say("muster metrics --plot", site.muster("metrics", job, "--key", "loss", "--plot"))

    losses = wait_for(lambda: losses_of_all_ranks(live), "the loss of all ranks among server-sent events")
    site.say("server-sent events", "\n".join(f"rank {rank}: {told}" for rank, told in sorted(losses.items())))
    events = wait_for(lambda: receiver.types_with("muster.job.succeeded"), "the webhook of the end")
    site.say("webhooks with a right signature", "\n".join(events))
    topics = wait_for(lambda: topics_with(listener, '"type":"muster.job.succeeded"'), "the end over MQTT")
    site.say("MQTT", "\n".join(topics))
    count = wait_for(lambda: prometheus_value(prometheus, 'muster_attempts_total{result="succeeded"}'), "Prometheus")
    site.say("Prometheus", f'muster_attempts_total{{result="succeeded"}} {count}')
    print(f"\nall have told of job {job}: its loss fell on all ranks, and it succeeded")
    return 0


class Observatory:
    """A fleet, and all that watches it, below one directory."""

    def __init__(self, directory: Path, stack: ExitStack) -> None:
        self._directory = directory
        self._stack = stack
        self._environ = {**os.environ, "MUSTER_HOME": str(directory / "home"), "NO_COLOR": "1"}
        self._coordinator = ""
        self._console = ""

    # what runs

    def start_fleet(self) -> None:
        """Three nodes and their coordinator."""
        fleet = self._directory / "fleet"
        words = (
            "up",
            "--nodes",
            str(RANKS),
            "--no-docker",
            "--no-console",
            "--listen",
            "127.0.0.1:0",
            "--dir",
            str(fleet),
        )
        log = self._start("muster", *words)
        found = wait_for(lambda: re.search(r"serves at (\S+);", log.read_text()), "three nodes")
        self._coordinator = found[1]

    def start_broker(self) -> tuple[int, Path]:
        """A broker of MQTT and somebody who listens: its port, and what was heard so far."""
        port, config = free_port(), self._directory / "mosquitto.conf"
        config.write_text(f"listener {port} 127.0.0.1\nallow_anonymous true\n")
        self._start("mosquitto", "-c", str(config))
        wait_for(lambda: is_open(port), "the broker")
        return port, self._start("mosquitto_sub", "-h", "127.0.0.1", "-p", str(port), "-v", "-t", "muster/v1/#")

    def start_receiver(self) -> "Receiver":
        """Somebody who takes webhooks, and verifies them."""
        return self._stack.enter_context(receiving())

    def start_console(self, broker: int, receiver: "Receiver") -> None:
        """The console, which tells the receiver and the broker."""
        (self._directory / "webhook.key").write_text(receiver.key)
        notify = self._directory / "notify.toml"
        notify.write_text(
            f'[mqtt]\nbroker = "mqtt://127.0.0.1:{broker}"\n\n'
            f'[web]\nallow = ["127.0.0.0/8"]\n\n'
            f'[[subscription]]\nname = "observed"\nevents = ["muster.job.*"]\nwebhook = "{receiver.url}"\n'
            f'secret_files = ["webhook.key"]\n'
        )
        ready = self._directory / "console.ready"
        where = (
            "--coordinator",
            self._coordinator,
            "--listen",
            "127.0.0.1:0",
            "--state",
            str(self._directory / "state"),
        )
        kept = ("--token-file", str(self._token), "--notify", str(notify), "--ready-file", str(ready))
        self._start("muster-console", *where, *kept)
        self._console = wait_for(lambda: ready.exists() and ready.read_text().strip(), "the console")

    def start_prometheus(self) -> str:
        """Prometheus, which scrapes the console each second; its URL."""
        port, config = free_port(), self._directory / "prometheus.yml"
        config.write_text(
            f"global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: muster\n"
            f'    authorization: {{credentials_file: "{self._token}"}}\n'
            f'    static_configs: [{{targets: ["{self._console.removeprefix("http://")}"]}}]\n'
        )
        kept = f"--storage.tsdb.path={self._directory / 'tsdb'}"
        self._start("prometheus", f"--config.file={config}", kept, f"--web.listen-address=127.0.0.1:{port}")
        return f"http://127.0.0.1:{port}"

    # what is done with it

    def submit(self) -> str:
        """Submit the job with curl; its id. What comes along with it is in the request."""
        contents = [{"path": name, "content": (HERE / name).read_text(encoding="ascii")} for name in FILES]
        command = f"python3 train.py {EPOCHS}"
        job = {"name": NAME, "workers": RANKS, "command": command, "resources": {"cpus": 0.1}, "files": contents}
        body = self._directory / "job.json"
        body.write_text(json.dumps(job))
        words = ("--header", "Content-Type: application/json", "--data-binary", f"@{body}")
        answer = subprocess.run(
            [*self._curl, *words, f"{self._console}/v1/jobs"], capture_output=True, text=True, check=False, timeout=60
        )
        if answer.returncode != 0:
            raise SystemExit(f"curl: {answer.stderr}{answer.stdout}")
        return str(json.loads(answer.stdout)["id"])

    def watch(self, job: str) -> Path:
        """What curl prints of the stream of the loss of a job."""
        words = ("--no-buffer", "--header", "Accept: text/event-stream")
        return self._start(*self._curl, *words, f"{self._console}/v1/live?on=points:{job}:loss")

    def muster(self, *words: str) -> str:
        """What a command prints."""
        done = subprocess.run(
            ["muster", *words], env=self._environ, capture_output=True, text=True, check=False, timeout=PATIENCE
        )
        if done.returncode != 0:
            raise SystemExit(f"muster {' '.join(words)}: {done.stderr}{done.stdout}")
        return done.stdout

    def say(self, who: str, told: str) -> None:
        """Print what somebody has told."""
        print(f"\n== {who}\n{told.rstrip()}", flush=True)

    # inside

    @property
    def _token(self) -> Path:
        return self._directory / "fleet" / "coordinator" / "local-token"

    @property
    def _curl(self) -> tuple[str, ...]:
        """A token in an argument could be seen by everybody on the machine, so it comes from a file."""
        header = self._directory / "authorization"
        if not header.exists():
            header.touch(mode=0o600)
            header.write_text(f"Authorization: Bearer {self._token.read_text().strip()}\n")
        return ("curl", "--silent", "--show-error", "--fail-with-body", "--header", f"@{header}")

    def _start(self, *command: str) -> Path:
        """Start a program that is ended at the end; what it prints."""
        log = self._directory / f"{len(list(self._directory.glob('*.log')))}-{command[0]}.log"
        self._stack.enter_context(running(command, log, self._environ))
        return log


@contextmanager
def running(command: tuple[str, ...], log: Path, environ: dict[str, str]) -> Iterator[None]:
    """A program as long as the block lasts."""
    with log.open("wb") as output:
        program = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=environ)
    try:
        yield
    finally:
        program.terminate()
        try:
            program.wait(timeout=30)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


class Receiver(ThreadingHTTPServer):
    """Takes webhooks as Standard Webhooks signs them: https://www.standardwebhooks.com."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), WebhookHandler)
        self._key = secrets.token_bytes(32)
        self._events: dict[str, str] = {}

    @property
    def url(self) -> str:
        """Where webhooks are sent to."""
        return f"http://127.0.0.1:{self.server_address[1]}/"

    @property
    def key(self) -> str:
        """What the sender is given, to sign with it."""
        return f"whsec_{base64.b64encode(self._key).decode()}\n"

    def take(self, number: str, at: str, signatures: str, body: bytes) -> bool:
        """Whether a request is from somebody who has the key, and new; its event is remembered then."""
        signed = hmac.digest(self._key, f"{number}.{at}.".encode() + body, hashlib.sha256)
        right = "v1," + base64.b64encode(signed).decode()
        is_genuine = any(hmac.compare_digest(each, right) for each in signatures.split())
        if not is_genuine or abs(time.time() - int(at)) > CLOCKS_DIFFER:
            return False
        self._events[number] = str(json.loads(body)["type"])
        return True

    def types_with(self, last: str) -> list[str]:
        """The types of all events that came, each once; none before there is one of this type."""
        found = list(self._events.values())
        return found if last in found else []


class WebhookHandler(BaseHTTPRequestHandler):
    """One request."""

    server: Receiver

    def do_POST(self) -> None:
        """Take it, or refuse it."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        number, at, signatures = (self.headers[f"webhook-{each}"] for each in ("id", "timestamp", "signature"))
        self.send_response(204 if self.server.take(number, at, signatures, body) else 401)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the base class's
        """Say nothing of single requests."""


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that serves in a thread."""
    with Receiver() as receiver:
        thread = threading.Thread(target=receiver.serve_forever, name="webhooks")
        thread.start()
        try:
            yield receiver
        finally:
            receiver.shutdown()
            thread.join()


def losses_of_all_ranks(stream: Path) -> dict[int, str]:
    """From which loss to which each rank has come, as soon as all have told their last one; empty before."""
    losses: dict[int, dict[int, float]] = {}
    for line in stream.read_text().splitlines():
        if not line.startswith("data:"):
            continue
        told = json.loads(line.removeprefix("data:")).get("points")
        for each in told["ranks"] if told else ():
            values = [point["values"] for point in each["points"]]
            losses.setdefault(each["rank"], {}).update({int(value["step"]): value["loss"] for value in values})
    if len(losses) < RANKS or any(len(steps) < EPOCHS for steps in losses.values()):
        return {}
    if any(steps[EPOCHS] >= steps[1] for steps in losses.values()):
        raise SystemExit("the loss of a rank has not fallen")
    return {rank: f"loss {steps[1]:.3f} -> {steps[EPOCHS]:.3f}" for rank, steps in losses.items()}


def topics_with(listener: Path, last: str) -> list[str]:
    """The topics of all that came over MQTT; none before a message has this part."""
    lines = listener.read_text().splitlines()
    return sorted({line.split()[0] for line in lines}) if any(last in line.replace(": ", ":") for line in lines) else []


def prometheus_value(url: str, query: str) -> str:
    """The value of a query; empty while there is none."""
    asked = f"{url}/api/v1/query?query={urllib.request.quote(query)}"
    try:
        with urllib.request.urlopen(asked, timeout=5) as answer:
            found = json.load(answer)["data"]["result"]
    except (urllib.error.URLError, OSError):
        return ""  # it is still starting
    return str(found[0]["value"][1]) if found else ""


def wait_for(look: Callable[[], Found], what: str) -> Found:
    """What a look finds, as soon as it finds anything."""
    deadline = time.monotonic() + PATIENCE
    while not (found := look()):
        if time.monotonic() > deadline:
            raise SystemExit(f"nothing was heard of {what} within {PATIENCE:.0f} s")
        time.sleep(0.1)
    return found


def free_port() -> int:
    """A port of loopback that nobody has just now."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def is_open(port: int) -> bool:
    """Whether somebody listens at a port of loopback."""
    with socket.socket() as each:
        each.settimeout(1)
        return each.connect_ex(("127.0.0.1", port)) == 0


if __name__ == "__main__":
    sys.exit(main())
