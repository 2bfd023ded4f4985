"""A serving log -> which memory bill overran, how we know, and which flag to move in which direction by how much.

reader   any log in bounded memory -> facts
watcher  line after line into facts: which texts are matched, by a signature's word first
facts    what was matched: phases, failures with their frames, clues, figures
usage    the KV cache over time, and whether length or number fills it
torch_oom  the amounts of PyTorch's out-of-memory line
rules    the bill of an allocation failure that does not name it
decide   the label, in the order of the fingerprints: failure at all, phase, typed message, frame, numbers
quiet    what is said where no failure was matched
rejoin   lines of a short log that were broken in two, put together again
excerpt  a part of a line, cut between words
verdict  the label with its evidence
replay   the sizing engine on the configuration of the log
bills    what it says each bill needs, and where that contradicts the log
fixes    the flags to move
told     by how much, where the figures of the log say it
values   by how much: by the log, the replay, or a first step to try
shortfall  by how much, from the log's own figures
healthy  the prediction beside the measurement, and the first limit
report   all of it as plain values
page     the same for a person, as text or HTML

Log text is data: it is never evaluated, never becomes a path, and holds no control characters once read.
"""
