"""What a start costs, in modules and TLS contexts; the CPU time of it is `make bench-quick`'s affair."""

from __future__ import annotations

import os
import subprocess
import sys

from dragoman.transport.connecting import Ways
from dragoman.transport.direct.options import Options as DirectOptions
from dragoman.transport.direct.tls import context_for
from dragoman.transport.options import Options

MODULES = 200
KEY = (None, b"https", b"127.0.0.1", 443)


def test_import_loads_fewer_modules_than_are_allowed() -> None:
    code = "import dragoman, sys; print(len(sys.modules))"
    unmeasured = {name: value for name, value in os.environ.items() if not name.startswith("COVERAGE")}  # which loads its own

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True, env=unmeasured).stdout

    assert int(printed) <= MODULES


def test_all_httpx2_transports_of_a_process_share_one_tls_context() -> None:
    first, second = (Ways(Options()).pool_options(KEY)["ssl_context"] for _ in range(2))

    assert first is second


def test_all_direct_transports_of_a_process_share_one_tls_context() -> None:
    assert context_for(DirectOptions()) is context_for(DirectOptions())
