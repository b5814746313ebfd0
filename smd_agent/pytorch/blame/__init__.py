"""Culprits of losses and gradients that are not finite."""
