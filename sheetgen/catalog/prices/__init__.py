"""Price lists (files or web addresses) in six known forms or the user's own, compared with the catalogs' rows.

Independent of the command line.
"""
