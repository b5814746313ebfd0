"""Ways in which people train with PyTorch, each as small as it can be; `benchmarks.torch_scenarios` makes a table."""
