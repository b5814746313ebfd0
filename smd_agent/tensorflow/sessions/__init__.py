"""Monitored sessions and estimators of ``tf.compat.v1``. Only the public names and the patch need this package."""
