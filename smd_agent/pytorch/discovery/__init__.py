"""The search for the model that a script trains without naming it."""
