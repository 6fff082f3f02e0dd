"""Games that only tests play."""
