"""The commands of `ninetka`, by use; `ninetka_train.cli` registers them.

Slow modules are imported inside the commands, so that `ninetka --help` is fast.
"""
