"""Tree searches for any game: with playouts (`mcts`), with a network (`gumbel`), or with both (`guided`)."""
