"""What capturing costs, as ratios from interleaved runs: `python -m benchmarks [names]` prints a markdown table."""
