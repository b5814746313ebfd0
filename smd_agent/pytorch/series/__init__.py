"""Numbers of every training step, saved or not; see ``core.series``."""
