"""The edge of fencing: ends user code in time, also when the agent is away or cut off."""
