"""What every command ends in: an exit code, and an error said in one line.

0 answered · 1 the provider failed · 2 usage or configuration · 130 interrupted · 141 the reader of our output has gone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from dragoman.errors import DragomanError, ProviderError, StorageError

__all__ = ["ANSWERED", "INTERRUPTED", "MISUSED", "PROVIDER_FAILED", "READER_GONE", "UsageError", "guarded"]

ANSWERED = 0
PROVIDER_FAILED = 1
MISUSED = 2
INTERRUPTED = 130
"""128 + SIGINT."""
READER_GONE = 141
"""128 + SIGPIPE, as a shell reports any tool whose output was closed (`dragoman probe … | head -1`)."""


class UsageError(Exception):
    """An option or argument that cannot be; the text says which and what to do."""


def guarded(command: Callable[[], int]) -> int:
    """Run a command and turn what it raises into an exit code, said on standard error. Our own bugs pass."""
    try:
        code = command()
        sys.stdout.flush()
    except (ProviderError, StorageError) as error:
        return _say(error, PROVIDER_FAILED)
    except (DragomanError, UsageError) as error:  # of the settings, the request, a cassette
        return _say(error, MISUSED)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _write_nowhere()
        return READER_GONE
    except OSError as error:  # commands say of their own files which one it was; this is a full disk under our output
        _write_nowhere()
        return _say(f"the output cannot be written: {error.strerror or error}", MISUSED)
    return code


def _write_nowhere() -> None:
    """What is left to flush at exit has nowhere to go."""
    sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123


def _say(error: Exception | str, code: int) -> int:
    sys.stdout.flush()
    sys.stderr.write(f"dragoman: {error}\n")
    return code
