"""Settings from the environment: one place that reads it, one way to say that a value is bad."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping

from dragoman.errors import ConfigError
from dragoman.retry import RetryPolicy
from dragoman.transport import YEAR, Timeouts
from dragoman.value import Secret

__all__ = ["Environment"]

_TRUE = frozenset({"1", "true", "yes", "on"})
_FALSE = frozenset({"0", "false", "no", "off"})


class Environment:
    """The environment at the moment it is made. An empty value counts as not set."""

    def __init__(self, variables: Mapping[str, str] | None = None) -> None:
        self._variables = dict(os.environ if variables is None else variables)

    def which(self, *names: str) -> str:
        """The name of the first of these that is set, or `""`."""
        return next((name for name in names if self._variables.get(name, "").strip()), "")

    def first(self, *names: str) -> str:
        """The value of the first of these that is set, or `""`."""
        return self._variables.get(self.which(*names), "").strip()

    def secret(self, *names: str) -> Secret:
        """The key or token of the first of these that is set, or `""`. Raises ConfigError, naming it, if no header can carry it."""
        value = Secret(self.first(*names))
        if not (value.isascii() and value.isprintable()):
            raise ConfigError(f"{self.which(*names)} contains a line break or a character that no header can carry")
        return value

    def flag(self, name: str) -> bool:
        """A yes or no (1/0, true/false, yes/no, on/off); not set is no. Raises ConfigError."""
        value = self.first(name).lower()
        if value and value not in _TRUE | _FALSE:
            raise ConfigError(f"{name} must be true or false, not {value!r}")
        return value in _TRUE

    def retry(self) -> RetryPolicy | None:
        """`DRAGOMAN_PROVIDER_MAX_RETRIES`: n retries are n + 1 attempts. Raises ConfigError."""
        value = self.first("DRAGOMAN_PROVIDER_MAX_RETRIES")
        if not value:
            return None
        if not (value.isascii() and value.isdecimal() and len(value) < 7):
            raise ConfigError(f"DRAGOMAN_PROVIDER_MAX_RETRIES must be a whole number from 0, not {value!r}")
        return RetryPolicy(max_attempts=int(value) + 1)

    def timeouts(self) -> Timeouts | None:
        """`DRAGOMAN_PROVIDER_TIMEOUT`: seconds for the first byte and between reads. Raises ConfigError."""
        value = self.first("DRAGOMAN_PROVIDER_TIMEOUT")
        if not value:
            return None
        try:
            seconds = float(value)
        except ValueError:
            seconds = math.nan
        if not 0 < seconds <= YEAR:  # NaN is not
            raise ConfigError(f"DRAGOMAN_PROVIDER_TIMEOUT must be a number of seconds above 0, not {value!r}")
        return Timeouts(first_byte=seconds, idle=seconds)
