"""What perfect play says of 9tka: exact targets, blunders, analyses, a study."""
