"""Price lists (files or web addresses), in six forms or one of the user's own, against the catalogs' rows.

Knows nothing of the command line.
"""
