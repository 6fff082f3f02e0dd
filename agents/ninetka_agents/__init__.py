"""Agents: they choose actions in positions of all games.

Start reading at `agent.py`; `plugins.py` lists the agents of each game.
"""

from ninetka_agents.agent import Agent, make_agent

__all__ = ["Agent", "make_agent"]
