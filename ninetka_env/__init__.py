"""The board game 9tka as a reinforcement-learning environment."""
