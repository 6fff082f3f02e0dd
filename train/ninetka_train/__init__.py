"""Training and evaluation of agents, and the command `ninetka`."""
