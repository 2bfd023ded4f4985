"""Result files of benchmark tools, and start-up logs, read as measured points."""
