"""Commands over SSH; the only package that knows paramiko.

paramiko blocks, so each connection attempt and each command is one call in a thread, with a limit in time of its own.
An unknown server is never believed: a key that is not in known_hosts is shown and asked about, one that differs from
what is known there is refused.
"""

import logging

# What goes wrong is raised; paramiko would print it, too.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False
