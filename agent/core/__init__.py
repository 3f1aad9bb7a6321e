"""The deterministic core of the agent: desired against observed, actions out. No clock, no chance, no I/O."""
