"""The programs of `muster up` on this machine."""
