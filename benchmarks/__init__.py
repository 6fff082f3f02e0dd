"""Benchmarks of speed and strength; peers are measured in the same run. `benchmarks.run` runs them."""
