"""Where two runs part: the first step and tensor, told apart from float noise. `compare` of ``runs`` does it."""
