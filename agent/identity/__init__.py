"""The identity of an agent: joining the fleet, its certificates and their renewals, what it shows to other agents."""
