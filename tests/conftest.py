"""Settings of all tests: the same examples in every run."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "derandomized",
    derandomize=True,
    max_examples=50,
    deadline=None,  # the machine may be busy; behaviour is tested, never time
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("derandomized")
