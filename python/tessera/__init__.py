"""Part-based representation learning in scikit-learn's conventions.

>>> from tessera import Parts
>>> parts = Parts(n_components=16, random_state=1).fit(X)   # X: (samples, features), at least 0
>>> codes = parts.transform(X)                              # (samples, components)
>>> parts.components_                                       # (components, features)

Each fit is one training by the command ``tessera``, which has to be installed: on the PATH, or named by the variable TESSERA.
"""

from ._command import TesseraError
from ._estimators import NMF, Model, Parts, SparseAutoencoder, SparseNMF

__all__ = ["NMF", "Model", "Parts", "SparseAutoencoder", "SparseNMF", "TesseraError"]
