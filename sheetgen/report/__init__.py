"""The page as data, before anyone draws it: what it says, in which order, in which words."""
