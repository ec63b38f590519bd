"""Estimators for scikit-learn: Boltzmann machines and joint energy models in pipelines, grid searches and tables."""

from harmonium.sklearn.dbn_transformer import DBNTransformer
from harmonium.sklearn.jem_classifier import JEMClassifier
from harmonium.sklearn.rbm_transformer import RBMTransformer

__all__ = ["DBNTransformer", "JEMClassifier", "RBMTransformer"]
