"""One adapter per game for the web app: see `adapter.py`. Adapters do not import one another."""
