"""How jobs are stopped: why, with which signal, and how long they have."""
