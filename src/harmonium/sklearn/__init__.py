"""Estimators for scikit-learn: Boltzmann machines and joint energy models in pipelines, grid searches and tables."""

from harmonium.sklearn.boltzmann_density import BoltzmannDensity
from harmonium.sklearn.boltzmann_imputer import BoltzmannImputer
from harmonium.sklearn.boltzmann_outlier import BoltzmannOutlier
from harmonium.sklearn.class_rbm_classifier import ClassRBMClassifier
from harmonium.sklearn.dbn_transformer import DBNTransformer
from harmonium.sklearn.jem_classifier import JEMClassifier
from harmonium.sklearn.rbm_transformer import RBMTransformer

__all__ = [
    "BoltzmannDensity",
    "BoltzmannImputer",
    "BoltzmannOutlier",
    "ClassRBMClassifier",
    "DBNTransformer",
    "JEMClassifier",
    "RBMTransformer",
]
