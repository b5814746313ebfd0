"""What the hooks of all frameworks have in common above the core: how they are made, and the one of the process."""
