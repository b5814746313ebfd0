"""A run's folder on disk: writing it while training, and reading it while and after it is written."""
