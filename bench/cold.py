"""A cold start, step by step, in a process that does nothing else: `python bench/cold.py LIBRARY CLIENT URL`.

Prints CPU milliseconds of importing the library, of importing and making its client, of the first call and the second, the number of
modules after the import and after the first call, and the resident memory (bytes) that each added.
"""

import sys
import time

_BEGAN = time.process_time()
__import__(sys.argv[1])
_IMPORTED = time.process_time()
_MODULES = len(sys.modules)

import importlib  # noqa: E402
import json  # noqa: E402

from material import Answer  # noqa: E402
from worker import resident  # noqa: E402

_RESIDENT = resident()
_MADE = time.process_time()
_client = importlib.import_module(sys.argv[2]).Client(sys.argv[3])
_times = [time.process_time()]
_after = 0
for _ in range(2):
    answer = Answer("text", 20)
    if not _client.check(_client.stream(answer.model), answer):
        raise SystemExit("a wrong answer")
    _times.append(time.process_time())
    _after = _after or resident()
print(
    "\n"
    + json.dumps(
        {
            "import": (_IMPORTED - _BEGAN) * 1e3,
            "client": (_times[0] - _MADE) * 1e3,
            "first call": (_times[1] - _times[0]) * 1e3,
            "second call": (_times[2] - _times[1]) * 1e3,
            "modules": _MODULES,
            "resident after import": _RESIDENT,
            "resident after first call": _after,
        }
    )
)
