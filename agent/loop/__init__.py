"""Events in, actions out: what an agent does with each execution, one step after the other."""
