"""The audit log as it happens, in a file of JSON lines and at a syslog."""
