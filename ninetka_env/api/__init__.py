"""Interfaces for every game: PettingZoo and Gymnasium environments, batches, game records, rendering, conformance."""
