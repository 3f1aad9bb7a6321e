"""Alerts: ranks and states of the fleet that somebody should look at, from when they begin until they end."""
