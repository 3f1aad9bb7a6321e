"""Which waiting job goes next, and why not the others."""
