"""Training of networks: self-play, losses, checkpoints and logs."""
