"""What the user can set: the environment (`env`) and the hook file, of which `load` makes frozen `settings`."""
