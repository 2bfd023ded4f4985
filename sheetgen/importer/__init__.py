"""Models of the user's own: a Hugging Face config.json as a catalog entry, without reading weights or running code."""
