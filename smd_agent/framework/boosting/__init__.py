"""Parts that libraries of boosted trees share: rounds as steps, what is saved of one, calls that train."""
