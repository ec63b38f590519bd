"""Published experiments, repeated with the models of this package."""
