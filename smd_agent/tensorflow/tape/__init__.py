"""GradientTape loops, eager and compiled."""
