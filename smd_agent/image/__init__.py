"""The Python of an image: whether it starts the agent, and what makes it do so quickly."""
