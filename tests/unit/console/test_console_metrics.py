"""A console itself, for Prometheus; and the alert about its certificate."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from console.alerts.alert import AlertKind
from console.alerts.certificate import CERTIFICATE_ENDS_SOON, certificate_end, certificate_signs
from console.telemetry.console_metrics import ConsoleFigures, of_console
from console.telemetry.exposition import exposition
from muster.domain.notifications.event_types import EventSeverity

ENDS = datetime(2026, 11, 28, 12, tzinfo=UTC)


def told(figures: ConsoleFigures) -> list[str]:
    return [line for line in "".join(exposition(of_console(figures))).splitlines() if not line.startswith("#")]


def test_what_a_console_counts_is_told_with_its_labels() -> None:
    figures = ConsoleFigures(
        mirror_current=True,
        mirror_age=1.5,
        viewers=3,
        requests={503: 1, 200: 40},
        tries={("webhook", True): 5, ("webhook", False): 2},
        certificate_ends=ENDS,
        alerts={("queue_old", "info"): 1},
    )

    assert told(figures) == [
        "muster_console_mirror_current 1",
        "muster_console_mirror_age_seconds 1.5",
        "muster_console_viewers 3",
        'muster_console_requests_total{code="200"} 40',
        'muster_console_requests_total{code="503"} 1',
        'muster_console_deliveries_total{target="webhook",result="failed"} 2',
        'muster_console_deliveries_total{target="webhook",result="taken"} 5',
        "muster_console_certificate_end_time_seconds 1795867200",
        'muster_alerts{kind="queue_old",severity="info"} 1',
    ]


def test_what_a_console_has_not_is_left_out() -> None:
    assert told(ConsoleFigures()) == ["muster_console_viewers 0"]


@pytest.mark.parametrize(
    ("left", "severity"),
    [
        (CERTIFICATE_ENDS_SOON, EventSeverity.WARNING),
        (timedelta(seconds=1), EventSeverity.WARNING),
        (timedelta(), EventSeverity.CRITICAL),
        (timedelta(days=-1), EventSeverity.CRITICAL),
    ],
)
def test_a_certificate_that_ends_soon_or_has_ended_is_an_alert(left: timedelta, severity: EventSeverity) -> None:
    [sign] = certificate_signs(ENDS, ENDS - left)

    assert (sign.kind, sign.severity) == (AlertKind.CERTIFICATE_ENDS, severity)
    assert "2026-11-28 12:00 UTC" in sign.text


def test_a_certificate_that_lasts_and_none_at_all_are_no_alerts() -> None:
    assert list(certificate_signs(ENDS, ENDS - CERTIFICATE_ENDS_SOON - timedelta(seconds=1))) == []
    assert list(certificate_signs(None, ENDS)) == []


def test_what_is_no_certificate_has_no_end(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("no certificate")

    assert [certificate_end(each) for each in (None, tmp_path / "other", tmp_path / "none")] == [None, None, None]
