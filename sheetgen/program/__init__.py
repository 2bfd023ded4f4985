"""How formulas are put together: axes, tables of quantities, and the same tables again under another limit.

A formula says what a quantity is made of; a table says on which axes it lives. `declared` has the words for that,
`sheet_program` and `row_program` say it of a sheet and of a single deployment, `grid` is numpy's reading of both, and
`javascript` prints them for a browser.
"""
