"""An index over what jobs have saved: checkpoints, made up of the parts of their ranks."""
