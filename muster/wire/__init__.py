"""Domain ↔ protobuf: every value that travels has `<thing>_to_wire` and `<thing>_from_wire`.

`_from_wire` trusts nothing: a message that is not valid raises WireError, which names the message and the field.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.wire.agents import (
        report_from_wire,
        report_to_wire,
    )
    from muster.wire.attachments.frames import (
        attachment_frame_from_wire,
        attachment_frame_to_wire,
        channel_message_from_wire,
        channel_message_to_wire,
    )
    from muster.wire.attachments.requests import (
        attachment_order_from_wire,
        attachment_order_to_wire,
        attachment_pass_from_wire,
        attachment_pass_to_wire,
        attachment_report_from_wire,
        attachment_report_to_wire,
        attachment_request_from_wire,
        attachment_request_to_wire,
        notice_for_attached_from_wire,
        notice_for_attached_to_wire,
        opened_attachment_from_wire,
        opened_attachment_to_wire,
        served_attachment_from_wire,
        served_attachment_to_wire,
    )
    from muster.wire.checks import WireError
    from muster.wire.events import job_event_from_wire, job_event_to_wire
    from muster.wire.explanations import (
        explanation_from_wire,
        explanation_to_wire,
        wait_reason_from_wire,
        wait_reason_to_wire,
    )
    from muster.wire.gangs.plans import PlanReader, PlanWriter, plan_from_wire, plan_to_wire
    from muster.wire.gangs.rosters import roster_from_wire, roster_to_wire
    from muster.wire.jobs import (
        attempt_from_wire,
        attempt_to_wire,
        execution_from_wire,
        execution_to_wire,
        job_change_from_wire,
        job_change_to_wire,
        job_from_wire,
        job_to_wire,
        log_line_from_wire,
        log_line_to_wire,
    )
    from muster.wire.model import (
        exit_from_wire,
        exit_to_wire,
        failure_from_wire,
        failure_to_wire,
        port_lease_from_wire,
        port_lease_to_wire,
    )
    from muster.wire.nodes import (
        gpu_from_wire,
        gpu_to_wire,
        inventory_from_wire,
        inventory_to_wire,
        node_from_wire,
        node_to_wire,
        window_from_wire,
        window_to_wire,
    )
    from muster.wire.secret_uses import secret_use_from_wire, secret_use_to_wire
    from muster.wire.secrets import (
        delivered_from_wire,
        delivered_to_wire,
        secret_from_wire,
        secret_to_wire,
    )
    from muster.wire.sharing.pools import pool_from_wire, pool_to_wire, pool_view_from_wire, pool_view_to_wire
    from muster.wire.sharing.projects import project_from_wire, project_to_wire
    from muster.wire.sharing.quotas import (
        queue_page_from_wire,
        queue_page_to_wire,
        unit_change_from_wire,
        unit_change_to_wire,
        unit_standing_from_wire,
        unit_standing_to_wire,
    )
    from muster.wire.sharing.storage import depot_use_from_wire, depot_use_to_wire
    from muster.wire.sharing.usage import (
        usage_report_from_wire,
        usage_report_to_wire,
        usage_wish_from_wire,
        usage_wish_to_wire,
    )
    from muster.wire.specs import (
        job_spec_from_wire,
        job_spec_to_wire,
        resources_from_wire,
        resources_to_wire,
        role_from_wire,
        role_to_wire,
    )
    from muster.wire.stories import (
        fleet_event_from_wire,
        fleet_event_to_wire,
        node_event_from_wire,
        node_event_to_wire,
    )
    from muster.wire.telemetry.points import rank_points_from_wire, rank_points_to_wire
    from muster.wire.telemetry.samples import node_sample_from_wire, node_sample_to_wire
    from muster.wire.trust import (
        account_from_wire,
        account_to_wire,
        audit_entry_from_wire,
        audit_entry_to_wire,
        authority_status_from_wire,
        authority_status_to_wire,
        enrolled_node_from_wire,
        enrolled_node_to_wire,
        join_token_from_wire,
        join_token_to_wire,
        token_from_wire,
        token_to_wire,
    )

__all__ = [
    "PlanReader",
    "PlanWriter",
    "WireError",
    "account_from_wire",
    "account_to_wire",
    "attachment_frame_from_wire",
    "attachment_frame_to_wire",
    "attachment_order_from_wire",
    "attachment_order_to_wire",
    "attachment_pass_from_wire",
    "attachment_pass_to_wire",
    "attachment_report_from_wire",
    "attachment_report_to_wire",
    "attachment_request_from_wire",
    "attachment_request_to_wire",
    "attempt_from_wire",
    "attempt_to_wire",
    "audit_entry_from_wire",
    "audit_entry_to_wire",
    "authority_status_from_wire",
    "authority_status_to_wire",
    "channel_message_from_wire",
    "channel_message_to_wire",
    "delivered_from_wire",
    "delivered_to_wire",
    "depot_use_from_wire",
    "depot_use_to_wire",
    "enrolled_node_from_wire",
    "enrolled_node_to_wire",
    "execution_from_wire",
    "execution_to_wire",
    "exit_from_wire",
    "exit_to_wire",
    "explanation_from_wire",
    "explanation_to_wire",
    "failure_from_wire",
    "failure_to_wire",
    "fleet_event_from_wire",
    "fleet_event_to_wire",
    "gpu_from_wire",
    "gpu_to_wire",
    "inventory_from_wire",
    "inventory_to_wire",
    "job_change_from_wire",
    "job_change_to_wire",
    "job_event_from_wire",
    "job_event_to_wire",
    "job_from_wire",
    "job_spec_from_wire",
    "job_spec_to_wire",
    "job_to_wire",
    "join_token_from_wire",
    "join_token_to_wire",
    "log_line_from_wire",
    "log_line_to_wire",
    "node_event_from_wire",
    "node_event_to_wire",
    "node_from_wire",
    "node_sample_from_wire",
    "node_sample_to_wire",
    "node_to_wire",
    "notice_for_attached_from_wire",
    "notice_for_attached_to_wire",
    "opened_attachment_from_wire",
    "opened_attachment_to_wire",
    "plan_from_wire",
    "plan_to_wire",
    "pool_from_wire",
    "pool_to_wire",
    "pool_view_from_wire",
    "pool_view_to_wire",
    "port_lease_from_wire",
    "port_lease_to_wire",
    "project_from_wire",
    "project_to_wire",
    "queue_page_from_wire",
    "queue_page_to_wire",
    "rank_points_from_wire",
    "rank_points_to_wire",
    "report_from_wire",
    "report_to_wire",
    "resources_from_wire",
    "resources_to_wire",
    "role_from_wire",
    "role_to_wire",
    "roster_from_wire",
    "roster_to_wire",
    "secret_from_wire",
    "secret_to_wire",
    "secret_use_from_wire",
    "secret_use_to_wire",
    "served_attachment_from_wire",
    "served_attachment_to_wire",
    "token_from_wire",
    "token_to_wire",
    "unit_change_from_wire",
    "unit_change_to_wire",
    "unit_standing_from_wire",
    "unit_standing_to_wire",
    "usage_report_from_wire",
    "usage_report_to_wire",
    "usage_wish_from_wire",
    "usage_wish_to_wire",
    "wait_reason_from_wire",
    "wait_reason_to_wire",
    "window_from_wire",
    "window_to_wire",
]

_NAMES = {
    "gangs.plans": (
        "PlanReader",
        "PlanWriter",
        "plan_from_wire",
        "plan_to_wire",
    ),
    "checks": ("WireError",),
    "sharing.storage": (
        "depot_use_from_wire",
        "depot_use_to_wire",
    ),
    "trust": (
        "account_from_wire",
        "account_to_wire",
        "audit_entry_from_wire",
        "audit_entry_to_wire",
        "authority_status_from_wire",
        "authority_status_to_wire",
        "enrolled_node_from_wire",
        "enrolled_node_to_wire",
        "join_token_from_wire",
        "join_token_to_wire",
        "token_from_wire",
        "token_to_wire",
    ),
    "attachments.requests": (
        "attachment_order_from_wire",
        "attachment_order_to_wire",
        "attachment_pass_from_wire",
        "attachment_pass_to_wire",
        "attachment_report_from_wire",
        "attachment_report_to_wire",
        "attachment_request_from_wire",
        "attachment_request_to_wire",
        "notice_for_attached_from_wire",
        "notice_for_attached_to_wire",
        "opened_attachment_from_wire",
        "opened_attachment_to_wire",
        "served_attachment_from_wire",
        "served_attachment_to_wire",
    ),
    "attachments.frames": (
        "attachment_frame_from_wire",
        "attachment_frame_to_wire",
        "channel_message_from_wire",
        "channel_message_to_wire",
    ),
    "jobs": (
        "attempt_from_wire",
        "attempt_to_wire",
        "execution_from_wire",
        "execution_to_wire",
        "job_change_from_wire",
        "job_change_to_wire",
        "job_from_wire",
        "job_to_wire",
        "log_line_from_wire",
        "log_line_to_wire",
    ),
    "secrets": (
        "delivered_from_wire",
        "delivered_to_wire",
        "secret_from_wire",
        "secret_to_wire",
    ),
    "model": (
        "exit_from_wire",
        "exit_to_wire",
        "failure_from_wire",
        "failure_to_wire",
        "port_lease_from_wire",
        "port_lease_to_wire",
    ),
    "explanations": (
        "explanation_from_wire",
        "explanation_to_wire",
        "wait_reason_from_wire",
        "wait_reason_to_wire",
    ),
    "telemetry.samples": ("node_sample_from_wire", "node_sample_to_wire"),
    "telemetry.points": ("rank_points_from_wire", "rank_points_to_wire"),
    "stories": (
        "fleet_event_from_wire",
        "fleet_event_to_wire",
        "node_event_from_wire",
        "node_event_to_wire",
    ),
    "nodes": (
        "gpu_from_wire",
        "gpu_to_wire",
        "inventory_from_wire",
        "inventory_to_wire",
        "node_from_wire",
        "node_to_wire",
        "window_from_wire",
        "window_to_wire",
    ),
    "events": (
        "job_event_from_wire",
        "job_event_to_wire",
    ),
    "specs": (
        "job_spec_from_wire",
        "job_spec_to_wire",
        "resources_from_wire",
        "resources_to_wire",
        "role_from_wire",
        "role_to_wire",
    ),
    "sharing.quotas": (
        "queue_page_from_wire",
        "queue_page_to_wire",
        "unit_change_from_wire",
        "unit_change_to_wire",
        "unit_standing_from_wire",
        "unit_standing_to_wire",
    ),
    "sharing.pools": (
        "pool_from_wire",
        "pool_to_wire",
        "pool_view_from_wire",
        "pool_view_to_wire",
    ),
    "sharing.usage": (
        "usage_report_from_wire",
        "usage_report_to_wire",
        "usage_wish_from_wire",
        "usage_wish_to_wire",
    ),
    "sharing.projects": (
        "project_from_wire",
        "project_to_wire",
    ),
    "agents": (
        "report_from_wire",
        "report_to_wire",
    ),
    "gangs.rosters": (
        "roster_from_wire",
        "roster_to_wire",
    ),
    "secret_uses": (
        "secret_use_from_wire",
        "secret_use_to_wire",
    ),
}
"""Module → what `__all__` has from it. It is loaded once somebody asks for that, as each program needs few of them."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: object = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = found
    return found
