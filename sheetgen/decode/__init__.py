"""A vendor's benchmark claim read back: "12,000 tok/s at concurrency 512 on 8x H100".

claim     the claim as people write it, and options -> Claim, checked
readings  each way to lay out the GPUs and run it, sized and timed by the formulas; what perfect software would reach;
          whether the claim can be true, and what it comes to at the requested context
answer    the record, its sentences, and what the numbers suggest that the claim leaves unsaid

No formula stands here: every figure is of `api.size_columns` and the tuples of `estimate`.
"""

from sheetgen.decode.answer import decode, decoded

__all__ = ["decode", "decoded"]
