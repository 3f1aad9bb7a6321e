"""What the nodes of a gang are told, and what they tell: plans, rosters, fences, logs."""
