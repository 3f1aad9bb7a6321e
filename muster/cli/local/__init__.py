"""The fleet of `muster up`: its programs on this machine, and who runs it."""
