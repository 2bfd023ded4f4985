"""The questions that can be asked: one deployment (a point), or models x workloads x tiers on candidates."""
