"""Parts that several frameworks share: how hooks are made, models found, functions replaced and steps captured."""
