"""Perfect play in 9tka's two-player movement phase."""
