"""Keras 3 on PyTorch: fit, evaluate and predict."""
