"""Who an agent is: joining the fleet, its certificate and the renewals."""
