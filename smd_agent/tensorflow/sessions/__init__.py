"""Monitored sessions and estimators of ``tf.compat.v1``. Nothing but the face and the patch need this package."""
