"""Layers inside of what ``torch.compile`` has compiled. Nothing but the capture needs this package."""
