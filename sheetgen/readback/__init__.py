"""Edited workbooks: read by defined names, compared, and carried back into the question they ask."""
