"""Start-up logs of serving engines: the engine's arguments and its measurements.

log_lines          a file, a pipe or a .gz as clean lines, in bounded memory
printed_arguments  printed arguments, read without evaluating them, and the engines' names of our inputs
startup_log        lines -> StartupLog: engine, version, arguments, figures by rank
log_inputs         the sizing inputs that a log states, and notes on what is missing or not sized

Log text is data: it is never evaluated, never becomes a path, and holds no control characters once read.
"""
