"""9tka: read geometry, then rules, then whatever you need."""
