"""How good a model is: likelihood, two-sample tests, calibration, outliers."""
