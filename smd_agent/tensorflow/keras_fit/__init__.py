"""Keras on TensorFlow: fit, evaluate and predict."""
