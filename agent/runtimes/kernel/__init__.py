"""Processes as the kernel tells of them: who is who in /proc, who belongs together, cgroups."""
