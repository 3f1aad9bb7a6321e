"""The one table of Grafana's dashboards, printed as `deploy/grafana/dashboards/*.json` by `make docs`."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

SCHEMA_OF_GRAFANA = 39
"""The version of the form of dashboards: that of Grafana 10 and 11, which newer ones read as well."""
COLUMNS, ACROSS, ROWS = 24, 2, 8
"""Columns of Grafana's grid, panels beside each other, and rows of a panel."""
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True, slots=True)
class GrafanaPanel:
    """A plot: what it asks Prometheus, and how it says so."""

    title: str
    told: str
    query: str
    legend: str
    unit: str
    """A unit of Grafana, such as `short`, `bytes`, `percentunit` or `s`."""
    stacked: bool = False


@dataclass(frozen=True, slots=True)
class GrafanaDashboard:
    """A page of plots, for one value of each variable that it has."""

    title: str
    panels: Sequence[GrafanaPanel]
    variables: Mapping[str, str]
    """Where the values of each variable come from, as Grafana asks Prometheus."""


DASHBOARDS: Mapping[str, GrafanaDashboard] = {
    "fleet": GrafanaDashboard(
        "Muster: fleet",
        (
            GrafanaPanel("Nodes", "Nodes by state.", "sum by (state) (muster_nodes)", "{{state}}", "short", True),
            GrafanaPanel(
                "GPUs", "What becomes of the GPUs.", "sum by (state) (muster_gpus)", "{{state}}", "short", True
            ),
            GrafanaPanel(
                "GPUs of projects",
                "GPUs that projects hold.",
                'sum by (project) (muster_project_gpus{what="held"})',
                "{{project}}",
                "short",
                True,
            ),
            GrafanaPanel(
                "GPUs of projects over their quota",
                "GPUs that projects hold beyond their quota, which others may get back.",
                'sum by (project) (muster_project_gpus{what="held"})'
                ' - sum by (project) (muster_project_gpus{what="quota"}) > 0',
                "{{project}}",
                "short",
            ),
            GrafanaPanel(
                "Queued jobs",
                "Queued jobs by why they wait.",
                "sum by (reason) (muster_queue_jobs)",
                "{{reason}}",
                "short",
                True,
            ),
            GrafanaPanel(
                "GPUs that queued jobs want",
                "GPUs that queued jobs want, by pool.",
                "sum by (pool) (muster_queue_gpus)",
                "{{pool}}",
                "short",
                True,
            ),
            GrafanaPanel(
                "Longest wait",
                "Time that the oldest queued job of each pool has waited.",
                "max by (pool) (muster_queue_oldest_seconds)",
                "{{pool}}",
                "s",
            ),
            GrafanaPanel(
                "GPUs that compute",
                "Part of the given GPUs that compute.",
                'sum by (pool) (muster_gpus{state="computing"}) / sum by (pool) (muster_gpus{state=~"computing|idle"})',
                "{{pool}}",
                "percentunit",
            ),
        ),
        {},
    ),
    "node": GrafanaDashboard(
        "Muster: node",
        (
            GrafanaPanel(
                "GPUs", "How busy each GPU is.", 'muster_gpu_busy_ratio{node="$node"}', "GPU {{gpu}}", "percentunit"
            ),
            GrafanaPanel(
                "Memory of GPUs",
                "Memory of each GPU that is held.",
                'muster_gpu_memory_used_bytes{node="$node"}',
                "GPU {{gpu}}",
                "bytes",
            ),
            GrafanaPanel(
                "Power", "Power that each GPU draws.", 'muster_gpu_power_watts{node="$node"}', "GPU {{gpu}}", "watt"
            ),
            GrafanaPanel(
                "Temperature",
                "How hot each GPU is.",
                'muster_gpu_temperature_celsius{node="$node"}',
                "GPU {{gpu}}",
                "celsius",
            ),
            GrafanaPanel("CPUs", "CPUs that are busy.", 'muster_node_cpus_busy{node="$node"}', "busy", "short"),
            GrafanaPanel(
                "Memory",
                "Memory that new programs cannot have.",
                'muster_node_memory_used_bytes{node="$node"}',
                "used",
                "bytes",
            ),
            GrafanaPanel(
                "Network",
                "What comes in on all networks.",
                'muster_node_network_receive_bytes_per_second{node="$node"}',
                "received",
                "Bps",
            ),
            GrafanaPanel(
                "Stalls",
                "Part of the time in which something waited for a resource.",
                'muster_node_stalled_ratio{node="$node"}',
                "{{resource}}",
                "percentunit",
            ),
        ),
        {"node": "label_values(muster_node_up, node)"},
    ),
    "job": GrafanaDashboard(
        "Muster: job",
        (
            GrafanaPanel(
                "CPUs",
                "CPUs that each rank keeps busy.",
                'muster_execution_cpus_busy{job="$job"}',
                "rank {{rank}}",
                "short",
            ),
            GrafanaPanel(
                "Memory", "Memory of each rank.", 'muster_execution_memory_bytes{job="$job"}', "rank {{rank}}", "bytes"
            ),
            GrafanaPanel(
                "Read from disks",
                "What each rank reads from disks.",
                'muster_execution_disk_read_bytes_per_second{job="$job"}',
                "rank {{rank}}",
                "Bps",
            ),
            GrafanaPanel(
                "Written to disks",
                "What each rank writes to disks.",
                'muster_execution_disk_write_bytes_per_second{job="$job"}',
                "rank {{rank}}",
                "Bps",
            ),
        ),
        {"job": "label_values(muster_execution_memory_bytes, job)"},
    ),
}
"""Dashboards by the name of their file."""


def dashboard_text(name: str) -> str:
    """A dashboard as Grafana reads it."""
    said = DASHBOARDS[name]
    page = {
        "uid": f"muster-{name}",
        "title": said.title,
        "tags": ["muster"],
        "schemaVersion": SCHEMA_OF_GRAFANA,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "templating": {"list": list(_variables(said))},
        "panels": [_panel(number, each) for number, each in enumerate(said.panels)],
    }
    return json.dumps(page, indent=2) + "\n"


def _variables(said: GrafanaDashboard) -> Iterator[Mapping[str, Any]]:
    yield {"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    for name, query in said.variables.items():
        yield {
            "name": name,
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": query, "refId": name},
            "refresh": 2,
            "sort": 1,
        }


def _panel(number: int, panel: GrafanaPanel) -> Mapping[str, Any]:
    width = COLUMNS // ACROSS
    custom = {"fillOpacity": 20 if panel.stacked else 0, "stacking": {"mode": "normal" if panel.stacked else "none"}}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": panel.title,
        "description": panel.told,
        "datasource": _SOURCE,
        "gridPos": {"x": number % ACROSS * width, "y": number // ACROSS * ROWS, "w": width, "h": ROWS},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0, "custom": custom}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [{"refId": "A", "datasource": _SOURCE, "expr": panel.query, "legendFormat": panel.legend}],
    }
