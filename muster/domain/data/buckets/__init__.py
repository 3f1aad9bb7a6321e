"""Objects of object stores: how URLs name them, and lists of which objects an input is."""
