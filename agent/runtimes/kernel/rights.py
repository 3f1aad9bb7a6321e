"""What the agent has the right to do."""

from pathlib import Path

_CHOWN, _DAC_OVERRIDE, _KILL, _SETGID, _SETUID = 0, 1, 5, 6, 7
_NEEDED = sum(1 << number for number in (_CHOWN, _DAC_OVERRIDE, _KILL, _SETGID, _SETUID))
"""Capabilities to become another user, give it its directories, end what it runs, and clear away what it left."""


def may_switch() -> bool:
    """Whether this process may run programs as other users, and then has the rights to look after them."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("CapEff:"):
            return int(line.split()[1], 16) & _NEEDED == _NEEDED
    return False
