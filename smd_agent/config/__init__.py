"""Settings of the user: the environment (`env`) and the hook file, of which `load` makes frozen `settings`."""
