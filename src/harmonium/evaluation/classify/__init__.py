"""How good a model's features and class probabilities are."""
