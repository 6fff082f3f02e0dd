"""The games, with one package for each.

In each package, start with `rules.py`. Users import `ninetka_env.ninetka_v0` and the modules of the other games
instead.
"""
