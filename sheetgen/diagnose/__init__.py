"""A serving log -> the part of memory that ran out, the evidence, and the flags to change, with direction and value.

reading       any log in bounded memory -> facts; short logs with broken lines are rejoined first
log_facts     line by line: matched signatures, phases, failures with their frames, clues, figures, KV cache usage
prose         tells log lines from quotations of them in documentation, questions and source code
cause         facts -> the label: by typed message, frame, phase, numbers
log_compared  a start-up log sized, beside the engine's own measurements
stated_parts  the KV pool predicted with the parts that the log states
replay        the sizing engine on the configuration of the log: memory by part, and contradictions to the log
fixes         the flags to change, with values from the log, from the replay, or as a first step
diagnosis     all of it as plain values, as text or as HTML

Log text is data: it is never evaluated, never becomes a path, and holds no control characters once read.
"""
