"""The identity of an agent: joining the fleet, its certificate and the renewals."""
