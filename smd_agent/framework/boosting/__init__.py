"""What the libraries of boosted trees have in common: rounds as steps, what is saved of one, calls that train."""
