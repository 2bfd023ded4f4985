"""Price lists (files or web addresses, four formats) against the catalogs' rows. Knows nothing of the command line."""
