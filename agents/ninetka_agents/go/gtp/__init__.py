"""The Go Text Protocol (GTP), version 2, in both directions.

`engine` runs an agent as a GTP engine; `agent` plays external GTP engines as agents.
"""
