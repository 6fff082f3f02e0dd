"""Tables: who plays what, what is allowed, what is shown, and what outlives the server."""
