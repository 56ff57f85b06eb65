"""The YAML of `nel eval run`: composed, overridden, expanded and validated by `nemo_evaluator.config.load`."""
