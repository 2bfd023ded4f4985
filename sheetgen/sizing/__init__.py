"""The sizing arithmetic: weights, KV cache, memory, parallelism. It knows numbers, no catalog and no file."""
