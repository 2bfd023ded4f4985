"""Launch flags of the serving engines for one deployment point, each set sized under that engine's own accounting."""
