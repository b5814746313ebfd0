"""The first step and tensor in which two runs differ, told apart from float noise. `compare` of ``runs`` finds it."""
