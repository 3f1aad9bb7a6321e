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
    from muster.wire.checks import WireError
    from muster.wire.events import job_event_from_wire, job_event_to_wire
    from muster.wire.explanations import explanation_from_wire, explanation_to_wire
    from muster.wire.jobs import (
        attempt_from_wire,
        attempt_to_wire,
        execution_from_wire,
        execution_to_wire,
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
    )
    from muster.wire.plans.plans import PlanReader, PlanWriter, plan_from_wire, plan_to_wire
    from muster.wire.plans.rosters import roster_from_wire, roster_to_wire
    from muster.wire.projects import project_from_wire, project_to_wire
    from muster.wire.secret_uses import secret_use_from_wire, secret_use_to_wire
    from muster.wire.secrets import (
        delivered_from_wire,
        delivered_to_wire,
        secret_from_wire,
        secret_to_wire,
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
    "attempt_from_wire",
    "attempt_to_wire",
    "audit_entry_from_wire",
    "audit_entry_to_wire",
    "authority_status_from_wire",
    "authority_status_to_wire",
    "delivered_from_wire",
    "delivered_to_wire",
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
    "node_to_wire",
    "plan_from_wire",
    "plan_to_wire",
    "port_lease_from_wire",
    "port_lease_to_wire",
    "project_from_wire",
    "project_to_wire",
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
    "token_from_wire",
    "token_to_wire",
]

_MODULES = (
    "checks",
    "secret_uses",
    "specs",
    "model",
    "jobs",
    "explanations",
    "events",
    "nodes",
    "secrets",
    "agents",
    "plans.rosters",
    "plans.plans",
    "projects",
    "trust",
    "stories",
)
"""Loaded when something is first asked for that the ones before do not have: a client needs few of them."""


def __getattr__(name: str) -> object:
    for module in _MODULES if name in __all__ else ():
        found = getattr(import_module(f"{__name__}.{module}"), name, None)
        if found is not None:
            globals()[name] = found
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
