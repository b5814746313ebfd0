"""What is saved and when: modes, steps, collections, reductions. Knows no framework and no environment."""
