"""Muster: gathers machines, calls the roll, and starts every worker of a distributed job at once.

What programs use is here: `from muster import Client, SyncClient, JobSpec, Role, Resources, load_job, errors`. A name
is loaded when it is first asked for, so that `from muster import worker` needs nothing but the standard library.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muster.client.blocking.stream import SyncStream
    from muster.client.client import Client
    from muster.client.connection import Connection
    from muster.client.sync.client import SyncClient
    from muster.domain import errors
    from muster.domain.data.output_terms import OutputTerms, StoredAfter
    from muster.domain.errors import (
        ClientNotOpenError,
        ConflictError,
        ExhaustedError,
        InvalidJobError,
        JobsRefusedError,
        MusterError,
        NotSignedInError,
        PermissionDeniedError,
        UnavailableError,
        UnknownNameError,
    )
    from muster.domain.fault import Fault
    from muster.domain.fleet.access import Access, AccountKind, Permissions
    from muster.domain.fleet.attach_permission import Attachers, AttachPermission
    from muster.domain.fleet.node import NodeState, NodeView
    from muster.domain.fleet.policies.policy import JobPolicy, PolicyRule
    from muster.domain.fleet.policies.preset import Preset, PresetKind
    from muster.domain.fleet.pool import Pool
    from muster.domain.fleet.secret import SecretKind
    from muster.domain.fleet.window import Window
    from muster.domain.ids import JobId
    from muster.domain.jobs.disconnect import OnDisconnect
    from muster.domain.jobs.explanation import Explanation
    from muster.domain.jobs.frameworks.dialect import Dialect
    from muster.domain.jobs.frameworks.framework import Framework, FrameworkName, LaunchPlace, Rendezvous
    from muster.domain.jobs.interactive import Interactive
    from muster.domain.jobs.job import (
        InlineFile,
        JobSpec,
        Mount,
        Network,
        Packing,
        PortRequest,
        PullPolicy,
        Resources,
        Role,
        Security,
        Timeouts,
        Ulimit,
    )
    from muster.domain.jobs.lifecycle import JobPhase, State, SuccessRule
    from muster.domain.jobs.queueing.change import JobChange
    from muster.domain.jobs.queueing.used_preset import UsedPreset
    from muster.domain.jobs.queueing.waiting import WaitKind, WaitReason
    from muster.domain.jobs.restart import RestartPolicy
    from muster.domain.jobs.secret_use import SecretUse
    from muster.domain.jobs.view import AttemptView, ExecutionView, JobView, LogLine
    from muster.domain.notifications.cloud_event import CloudEvent, cloud_event
    from muster.domain.notifications.happening import EventPlace, Happening
    from muster.domain.usage import UsageBy, UsageReport, UsageRow
    from muster.jobfile import JobFileError, dump_job, job_from, load_job, load_jobs
    from muster.jobfile.presets import described_jobs
    from muster.jobfile.presets.job_document import JobDocument
    from muster.rpc.channel import Credentials

__version__ = "0.1.0"

_FROM: Mapping[str, tuple[str, ...]] = {
    "muster.client.client": ("Client",),
    "muster.client.connection": ("Connection",),
    "muster.client.sync.client": ("SyncClient",),
    "muster.client.blocking.stream": ("SyncStream",),
    "muster.domain.errors": (
        "ClientNotOpenError",
        "ConflictError",
        "ExhaustedError",
        "InvalidJobError",
        "JobsRefusedError",
        "MusterError",
        "NotSignedInError",
        "PermissionDeniedError",
        "UnavailableError",
        "UnknownNameError",
    ),
    "muster.domain.data.output_terms": ("OutputTerms", "StoredAfter"),
    "muster.domain.fleet.access": (
        "Access",
        "AccountKind",
        "Permissions",
    ),
    "muster.domain.fleet.attach_permission": (
        "AttachPermission",
        "Attachers",
    ),
    "muster.domain.fleet.node": (
        "NodeState",
        "NodeView",
    ),
    "muster.domain.fleet.policies.policy": (
        "JobPolicy",
        "PolicyRule",
    ),
    "muster.domain.fleet.policies.preset": (
        "Preset",
        "PresetKind",
    ),
    "muster.domain.fleet.pool": ("Pool",),
    "muster.domain.fleet.secret": ("SecretKind",),
    "muster.domain.notifications.cloud_event": ("CloudEvent", "cloud_event"),
    "muster.domain.notifications.happening": ("EventPlace", "Happening"),
    "muster.domain.usage": ("UsageBy", "UsageReport", "UsageRow"),
    "muster.domain.fleet.window": ("Window",),
    "muster.domain.ids": ("JobId",),
    "muster.domain.jobs.queueing.change": ("JobChange",),
    "muster.domain.jobs.disconnect": ("OnDisconnect",),
    "muster.domain.jobs.explanation": ("Explanation",),
    "muster.domain.jobs.frameworks.dialect": ("Dialect",),
    "muster.domain.jobs.frameworks.framework": (
        "Framework",
        "FrameworkName",
        "LaunchPlace",
        "Rendezvous",
    ),
    "muster.domain.jobs.interactive": ("Interactive",),
    "muster.domain.jobs.job": (
        "InlineFile",
        "JobSpec",
        "Mount",
        "Network",
        "Packing",
        "PortRequest",
        "PullPolicy",
        "Resources",
        "Role",
        "Security",
        "Timeouts",
        "Ulimit",
    ),
    "muster.domain.fault": ("Fault",),
    "muster.domain.jobs.lifecycle": (
        "JobPhase",
        "State",
        "SuccessRule",
    ),
    "muster.domain.jobs.restart": ("RestartPolicy",),
    "muster.domain.jobs.secret_use": ("SecretUse",),
    "muster.domain.jobs.view": (
        "AttemptView",
        "ExecutionView",
        "JobView",
        "LogLine",
    ),
    "muster.domain.jobs.queueing.used_preset": ("UsedPreset",),
    "muster.domain.jobs.queueing.waiting": (
        "WaitKind",
        "WaitReason",
    ),
    "muster.jobfile": (
        "JobFileError",
        "dump_job",
        "job_from",
        "load_job",
        "load_jobs",
    ),
    "muster.jobfile.presets": ("described_jobs",),
    "muster.jobfile.presets.job_document": ("JobDocument",),
    "muster.rpc.channel": ("Credentials",),
}
"""What comes from where; the imports above tell type checkers the same."""

_MODULES = {name: module for module, names in _FROM.items() for name in names}

__all__ = [
    "Access",
    "AccountKind",
    "AttachPermission",
    "Attachers",
    "AttemptView",
    "Client",
    "ClientNotOpenError",
    "CloudEvent",
    "ConflictError",
    "Connection",
    "Credentials",
    "Dialect",
    "EventPlace",
    "ExecutionView",
    "ExhaustedError",
    "Explanation",
    "Fault",
    "Framework",
    "FrameworkName",
    "Happening",
    "InlineFile",
    "Interactive",
    "InvalidJobError",
    "JobChange",
    "JobDocument",
    "JobFileError",
    "JobId",
    "JobPhase",
    "JobPolicy",
    "JobSpec",
    "JobView",
    "JobsRefusedError",
    "LaunchPlace",
    "LogLine",
    "Mount",
    "MusterError",
    "Network",
    "NodeState",
    "NodeView",
    "NotSignedInError",
    "OnDisconnect",
    "OutputTerms",
    "Packing",
    "PermissionDeniedError",
    "Permissions",
    "PolicyRule",
    "Pool",
    "PortRequest",
    "Preset",
    "PresetKind",
    "PullPolicy",
    "Rendezvous",
    "Resources",
    "RestartPolicy",
    "Role",
    "SecretKind",
    "SecretUse",
    "Security",
    "State",
    "StoredAfter",
    "SuccessRule",
    "SyncClient",
    "SyncStream",
    "Timeouts",
    "Ulimit",
    "UnavailableError",
    "UnknownNameError",
    "UsageBy",
    "UsageReport",
    "UsageRow",
    "UsedPreset",
    "WaitKind",
    "WaitReason",
    "Window",
    "__version__",
    "cloud_event",
    "described_jobs",
    "dump_job",
    "errors",
    "job_from",
    "load_job",
    "load_jobs",
]


def __getattr__(name: str) -> object:
    if name == "errors":
        return import_module("muster.domain.errors")
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module 'muster' has no attribute {name!r}")
    return getattr(import_module(module), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
