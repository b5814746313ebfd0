"""The models being trained: their step counters, wrappers and shards."""
