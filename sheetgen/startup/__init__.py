"""Start-up logs of serving engines: what the engine was given and what it measured.

lines     a file, a pipe or a .gz as clean lines, in bounded memory
words     arguments read without evaluating them, and the engines' words for our inputs
read      the texts that engines print, as a table; lines -> StartupLog: engine, version, arguments, figures by rank
inputs    its arguments in our words, and what it does not state or is not sized

Log text is data: it is never evaluated, never becomes a path, and holds no control characters once read.
"""
