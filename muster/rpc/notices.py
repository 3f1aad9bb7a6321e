"""Names of trailing metadata with which the coordinator tells something beside an answer, while there is something."""

TOKEN_ENDS = "muster-token-ends"  # noqa: S105 - the name of a field
"""When the token that was shown ends (ISO 8601, UTC), in the last days before it does."""
