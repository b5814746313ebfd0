"""Modes, steps, collections, reductions: what is saved and when. Knows no framework and no environment."""
