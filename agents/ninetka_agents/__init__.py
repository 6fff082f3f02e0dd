"""Agents: they choose actions in positions of all games."""

from ninetka_agents.agent import Agent, make_agent

__all__ = ["Agent", "make_agent"]
