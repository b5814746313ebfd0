"""Bundles of steps that went wrong, and steps that are made again by them."""
