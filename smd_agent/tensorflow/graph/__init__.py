"""Graphs that TensorFlow has traced, and their rewriting."""
