"""Play games on many machines with Ray: the same tasks that one process would play, assigned to workers.

Start with `tasks.py` and `workers.py`; `command.py` has the option of the command line.
"""

LOCAL = "local"
"""Address of a cluster on this machine that ends with the command."""
