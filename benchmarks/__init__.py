"""Benchmarks of speed and strength, run by `benchmarks.run`.

A *peer* is comparable software by others, which is measured in the same run.
"""
