"""The web server: HTTP and WebSocket in `server.py`, message formats in `protocol.py`, dispatch in `hub.py`."""
