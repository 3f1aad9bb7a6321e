"""The names of the programs that are brought into executions for commands in other executions of the gang."""

INSIDE = "muster-inside"
"""The companion, and what waiting executions run."""

CALLERS = ("muster-exec", "muster-rsh", "ssh")
"""Programs that user code calls; each is the same one, which goes by its name."""

TICKET_VARIABLE = "MUSTER_TICKET"
"""Variable in which the companion finds what it shows at the door."""
