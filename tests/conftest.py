"""Property tests here never depend on the speed of the machine, and no test on how the suite was started."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile("dragoman", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dragoman")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as a shell's background job, and the programs that tests interrupt would inherit it
    signal.signal(signal.SIGINT, signal.default_int_handler)

pytest_plugins = ["pytester"]
