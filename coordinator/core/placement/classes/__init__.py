"""Node classes: nodes that are alike but for what is free, by free GPUs and then in bins."""
