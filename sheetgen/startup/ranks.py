"""Which rank of the engine wrote a line: its tensor, pipeline or data-parallel place, or its process."""

from __future__ import annotations

import re

# (Worker_TP0_EP0 pid=770)  (VllmWorker rank=1 pid=7)  (VllmWorkerProcess pid=9)  (EngineCore_DP0 pid=5)
_VLLM = re.compile(r"\((?:Vllm|Ray)?(Worker|EngineCore)(\w{0,40})(?: rank=(\d{1,4}))?(?: pid=(\d{1,10}))?[,)]")
# [2025-03-08 12:29:21 TP1]  [2026-09-11 23:34:13 DP0 TP0 EP0]
_SGLANG = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d((?: [A-Z]{2,8}\d{1,4}){1,6})\]")
# [TRT-LLM] [RANK 1] [I]  [1,3]<stdout>:
_MPI = re.compile(r"\[RANK (\d{1,4})\]|\[\d,(\d{1,4})\]<std")
_PLACE = re.compile(r"(?:TP|PP|DP|EP|CP)\d{1,4}")


def rank_of(text: str) -> str:
    """`TP1`, `PP0 TP1`, `rank 3`, `process 770`; empty where a line names none."""
    head = text[:300]
    if match := _VLLM.search(head):
        places = _PLACE.findall(match[2])
        if places:
            return " ".join(places)
        if match[3]:
            return f"rank {match[3]}"
        return f"process {match[4]}" if match[1] == "Worker" and match[4] else ""
    if match := _SGLANG.search(head):
        return match[1].strip()
    if match := _MPI.search(head):
        return f"rank {match[1] or match[2]}"
    return ""
