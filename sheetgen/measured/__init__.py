"""Results of benchmarks, as the tools that made them write them: read into measured points."""
