"""The engine: the one task that owns the cluster, with its inbox, the streams of agents and its way back."""
