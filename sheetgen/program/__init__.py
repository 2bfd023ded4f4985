"""Formulas assembled into tables over axes, and their reading as JavaScript."""
