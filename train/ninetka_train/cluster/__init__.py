"""Games on many machines, by Ray: the tasks that one process would play, handed out to workers."""
