"""Games on many machines, by Ray: the tasks that one process would play, handed out to workers."""

LOCAL = "local"
"""The address of a cluster on this machine that ends with the command."""
