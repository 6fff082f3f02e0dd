"""Tree search for any game: with playouts, with a network, with both."""
