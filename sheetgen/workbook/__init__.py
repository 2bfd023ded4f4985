"""Workbooks read back: one as a `Snapshot` of values by name, two compared.

A workbook comes from anybody's mail. So its sizes are checked before it is unpacked, no part but the sheets that carry
our names is read, cells are found by defined names and never by address, and each way of being wrong is one line.
"""
