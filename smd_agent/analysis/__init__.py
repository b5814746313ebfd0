"""Reading a run: `create_trial` in `smd_agent.analysis.trial` opens one, `Tensor` gives its values."""
