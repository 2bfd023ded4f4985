"""The page as data, independent of format: its contents, their order and their words."""
