"""Tree searches for any game: with playouts (`mcts`), with a network (`gumbel`), or with both (`guided`).

Start with `mcts.py` and `uct.py` for searches without a network, with `gumbel.py` for searches with one.
`ninetka_agents.net_agent.make_searches` chooses the search of a network.

A *choice* is the number of a legal action in a search, by default the action itself; see
`ninetka_env.core.verbs.write_choices`.
"""
