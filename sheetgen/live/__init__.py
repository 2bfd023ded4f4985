"""The page that answers in the browser: one file with the program, its facts, and the page around them."""
