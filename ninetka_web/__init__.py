"""The table: play, watch and understand games of 9tka in the browser."""
