"""Where and how an evaluation runs: suites, profiles, plans and the backends that execute them."""

__version__ = "0.4.0"
