"""Models of the user's own: a Hugging Face config.json as a catalog entry. No weights, no code of a model is run."""
