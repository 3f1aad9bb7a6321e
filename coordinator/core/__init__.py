"""The deterministic core: events in, changed records and orders out. No clock, no chance, no I/O."""
