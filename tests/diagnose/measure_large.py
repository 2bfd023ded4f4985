"""Memory and time of a large log, by hand, for it takes minutes: python tests/diagnose/measure_large.py [MIB]."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from test_hostile_logs import run_large

if __name__ == "__main__":
    size = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    label, peak_mib, seconds = run_large(size)
    print(f"{size} MiB: {label}, peak {peak_mib:.0f} MiB, {seconds:.0f} s")
