"""Tables: their rules in `table.py`, their JSON for browsers in `views.py`, their storage in `store.py`."""
