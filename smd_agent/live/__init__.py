"""Rules that are asked while training goes on, in a process of their own, and what is done when they find something."""
