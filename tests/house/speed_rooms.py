"""Where code lies that is there for speed or memory alone."""

SPEED_ROOMS = ("coordinator/tuning/", "muster/lean/")
"""Folders; their modules may change other libraries."""
SPEED_MODULES = ("agent/runtimes/process/spares.py", "coordinator/rpc/agents/heartbeats.py")
"""Modules among others of their subject."""
