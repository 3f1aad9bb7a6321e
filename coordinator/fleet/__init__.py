"""The identity of a fleet: in the state directory, in the database and with the keys; a start compares all three."""
