"""The page about a run: one file that needs no network, made by `write_page` in `smd_agent.report.page`."""
