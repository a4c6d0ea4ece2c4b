"""`bench/soak.py` runs, at the smallest size."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .calls import needs_proc

SOAK = Path(__file__).parents[2] / "bench" / "soak.py"


@needs_proc
def test_a_small_bad_day() -> None:
    ran = subprocess.run([sys.executable, str(SOAK), "--scale", "0.01"], capture_output=True, text=True, check=False)
    assert ran.stdout.endswith("all held\n"), ran.stdout + ran.stderr
    assert "99th percentile" in ran.stdout
    assert ran.returncode == 0
