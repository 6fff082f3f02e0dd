"""What knows no game: what all of them are made of."""
