"""Play games on many machines with Ray: the same tasks that one process would play, assigned to workers."""

LOCAL = "local"
"""Address of a cluster on this machine that ends with the command."""
