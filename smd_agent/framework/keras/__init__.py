"""Watcher of Keras: counts and saves the steps of ``fit`` and its like, whatever library Keras computes with."""
