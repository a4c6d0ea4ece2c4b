"""Property tests here never depend on the speed of the machine."""

from hypothesis import HealthCheck, settings

settings.register_profile("dragoman", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("dragoman")

pytest_plugins = ["pytester"]
