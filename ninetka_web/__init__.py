"""The web app: play, watch and analyse games of 9tka, Go and Kropki in the browser; `server/server.py` starts it."""
