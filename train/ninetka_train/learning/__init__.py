"""How networks learn: self-play, losses, checkpoints, logs."""
