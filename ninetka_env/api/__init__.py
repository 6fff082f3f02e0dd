"""Interfaces for all games: PettingZoo and Gymnasium environments, batches, game records, rendering, conformance.

Start with `aec.py` for single games, with `vector.py` for batches, with `one_seat.py` for Gymnasium. Users import
`ninetka_env.ninetka_v0` and the modules of the other games instead.
"""
