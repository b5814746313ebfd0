"""Capture of a step while it runs: weights, inputs, outputs, losses, gradients."""
