"""A real Prometheus scrapes a console over TLS with a token; its rules and the metrics fit each other."""

import asyncio
import json
import re
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from ruamel.yaml import YAML

from tests.house.generate_stubs import ROOT
from tests.integration.consoles import ServedConsole, certified, console
from tests.integration.fleet import SECRET, running_fleet
from tests.integration.jobs import shell

RULES = ROOT / "deploy" / "prometheus"
DASHBOARDS = ROOT / "deploy" / "grafana" / "dashboards"
SCRAPED_WITHIN = 40.0
_CONFIG = """
global: {{scrape_interval: 1s}}
scrape_configs:
  - &one
    job_name: muster
    scheme: https
    authorization: {{credentials_file: "{token}"}}
    tls_config: {{ca_file: "{authority}"}}
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
  - {{<<: *one, job_name: muster-nodes, metrics_path: /metrics/nodes}}
  - job_name: nodes
    http_sd_configs:
      - url: https://127.0.0.1:{port}/v1/prometheus/targets?port=9
        authorization: {{type: Bearer, credentials_file: "{token}"}}
        tls_config: {{ca_file: "{authority}"}}
    relabel_configs: [{{source_labels: [__meta_muster_node], target_label: node}}]
"""

pytestmark = pytest.mark.skipif(shutil.which("prometheus") is None, reason="Prometheus is not installed")


def promtool(*words: str, text: bytes = b"", at: Path = RULES) -> str:
    done = subprocess.run(["promtool", *words], input=text, cwd=at, capture_output=True, timeout=60, check=False)
    said = done.stdout.decode() + done.stderr.decode()
    assert done.returncode == 0, said
    return said


def test_the_rules_raise_their_alerts_and_no_others() -> None:
    assert "SUCCESS" in promtool("test", "rules", "rules_test.yml")


async def test_metrics_are_as_prometheus_wants_them(tmp_path: Path) -> None:
    async with running_fleet(tmp_path, "a") as fleet, console(fleet.address) as served, served.http(SECRET) as http:
        await fleet.client.jobs.submit(shell("true", gpus=1, hold=True))
        for path in ("/metrics", "/metrics/nodes"):
            answer = await http.get(path)
            assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
            assert promtool("check", "metrics", text=answer.content) == ""


@asynccontextmanager
async def prometheus(directory: Path, served: ServedConsole) -> AsyncIterator[httpx.AsyncClient]:
    """Prometheus, asked over HTTP."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    config = directory / "prometheus.yml"
    token = directory / "token"
    token.write_text(SECRET)
    config.write_text(_CONFIG.format(token=token, authority=served.authority, port=served.port))
    with (directory / "prometheus.log").open("wb") as log:
        program = await asyncio.create_subprocess_exec(
            *("prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory / 'tsdb'}"),
            f"--web.listen-address=127.0.0.1:{port}",
            stderr=log,
        )
    try:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}/api/v1") as http:
            yield http
    finally:
        program.terminate()
        await program.wait()


async def found(http: httpx.AsyncClient, query: str) -> Any:
    """What a query gives, as soon as it gives something."""
    with suppress(TimeoutError):
        async with asyncio.timeout(SCRAPED_WITHIN):
            while True:
                with suppress(httpx.TransportError):  # it is still starting
                    answer = await http.get("/query", params={"query": query})
                    if answer.is_success and (result := answer.json()["data"]["result"]):  # 503 while it starts
                        return result
                await asyncio.sleep(0.2)
    raise AssertionError(f"nothing is told by {query}")


def metrics_of_rules() -> set[str]:
    rules = YAML(typ="safe").load((RULES / "rules.yml").read_text())["groups"][0]["rules"]
    return {name for rule in rules for name in re.findall(r"muster_[a-z_]+", rule["expr"])}


def queries_of_dashboards() -> list[str]:
    """What the dashboards ask, for one node and one job."""
    pages = [json.loads(file.read_text()) for file in sorted(DASHBOARDS.glob("*.json"))]
    asked = [target["expr"] for page in pages for panel in page["panels"] for target in panel["targets"]]
    assert len(asked) == 20
    return [query.replace("$node", "a").replace("$job", "k3") for query in asked]


async def test_prometheus_understands_every_query_of_the_dashboards_which_ask_for_metrics_that_there_are(
    tmp_path: Path,
) -> None:
    (tmp_path / "fleet").mkdir()
    files = certified(tmp_path)
    told = "".join(file.read_text() for file in (ROOT / "console" / "telemetry").glob("*_metrics.py"))
    async with running_fleet(tmp_path / "fleet", "a") as fleet:
        await fleet.client.jobs.submit(shell("exec sleep 60", gpus=8))
        async with (
            console(fleet.address, cert=files["cert"], key=files["key"], believed=files["authority"]) as served,
            prometheus(tmp_path, served) as http,
        ):
            assert await found(http, "sum by (state) (muster_nodes)")
            for query in queries_of_dashboards():
                answer = (await http.get("/query", params={"query": query})).json()
                assert answer["status"] == "success", (query, answer)
                names = set(re.findall(r"muster_[a-z_]+", query)) - {"muster_project_gpus"}
                assert {name for name in names if f'"{name}"' not in told} == set(), query
            assert (await http.get("/query", params={"query": "sum by ("})).json()["status"] == "error"
            assert await found(http, 'sum by (project) (muster_project_gpus{what="held"})')


async def test_prometheus_scrapes_a_console_and_every_metric_of_its_rules_is_there(tmp_path: Path) -> None:
    (tmp_path / "fleet").mkdir()
    files = certified(tmp_path)
    async with running_fleet(tmp_path / "fleet", "a") as fleet:
        job = await fleet.client.jobs.submit(shell("exec sleep 60", gpus=8))
        await fleet.client.jobs.submit(shell("exec sleep 60", gpus=8))
        async with (
            console(fleet.address, cert=files["cert"], key=files["key"], believed=files["authority"]) as served,
            prometheus(tmp_path, served) as http,
        ):
            (ready,) = await found(http, 'muster_nodes{state="ready"}')
            assert ready["value"][1] == "1"
            assert await found(http, "muster_coordinator_commit_seconds_count > 0")
            assert await found(http, 'muster_console_requests_total{code="200"}')
            assert await found(http, "muster_console_certificate_end_time_seconds > time()")
            # Simulated GPUs are not looked at at once, and there are no alerts.
            wanted = metrics_of_rules() - {"muster_gpu_busy_ratio", "muster_alerts"}
            assert {"muster_node_up", "muster_gpu_healthy", "muster_queue_oldest_seconds"} <= wanted
            for name in sorted(wanted):
                assert await found(http, name)
            assert len(await found(http, "muster_gpu_allocated == 1")) == 8
            (target,) = await found(http, 'up{job="nodes"}')
            assert (target["metric"]["node"], target["metric"]["instance"]) == ("a", "127.0.0.2:9")
        await fleet.client.jobs.stop(job.id)
