"""A serving log -> which part of memory ran out, how we know, and which flag to move in which direction by how much.

reading   any log in bounded memory -> facts; short logs whose lines were broken in two, put together again
facts     line after line: which texts are matched, by a signature's word first; phases, failures with their frames,
          clues, figures, the KV cache over time
verdict   the label, in the order of the fingerprints: failure at all, phase, typed message, frame, numbers
compared  a start-up log sized, beside what the engine measured
replay    the sizing engine on the configuration of the log: its bills, and where they contradict the log
fixes     the flags to move, and by how much: by the log, the replay, or a first step to try
report    all of it as plain values, with what was short and how a healthy log compares; the same as text or HTML

Log text is data: it is never evaluated, never becomes a path, and holds no control characters once read.
"""
