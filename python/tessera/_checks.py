"""Checks of arguments with scikit-learn's messages, and its base classes where it is installed."""

import numpy as np

try:
    from sklearn.base import BaseEstimator, TransformerMixin
    from sklearn.exceptions import NotFittedError
except ImportError:  # NumPy is all that is needed
    import inspect

    class NotFittedError(ValueError, AttributeError):
        """The estimator has no fit yet."""

    class BaseEstimator:
        def get_params(self, deep=True):
            return {name: getattr(self, name) for name in list(inspect.signature(type(self).__init__).parameters)[1:]}

        def set_params(self, **values):
            known = self.get_params()
            for name, value in values.items():
                if name not in known:
                    raise ValueError(f"Invalid parameter {name!r} for estimator {self!r}. Valid parameters are: {sorted(known)!r}.")
                setattr(self, name, value)
            return self

        def __repr__(self):
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    class TransformerMixin:
        def fit_transform(self, X, y=None):
            return self.fit(X, y).transform(X)


def feature_names(X):
    """The names of the columns of a data frame, or None."""
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.asarray(columns, dtype=object)


def matrix(X, who, least=None):
    """X as a matrix of finite float32 or float64 values, at least `least`."""
    if hasattr(X, "tocsr"):
        raise TypeError(f"A sparse matrix was passed, but dense data is required by {who}. Use X.toarray() to convert to a dense array.")
    X = np.asarray(X)
    if np.iscomplexobj(X):
        raise ValueError(f"Complex data not supported\n{X}\n")
    if X.ndim != 2:
        raise ValueError(f"Expected 2D array, got {X.ndim}D array instead:\narray={X}.\nReshape your data either using array.reshape(-1, 1) if your "
                         "data has a single feature or array.reshape(1, -1) if it contains a single sample.")
    for n, what in zip(X.shape, ("sample", "feature")):
        if n == 0:
            raise ValueError(f"Found array with 0 {what}(s) (shape={X.shape}) while a minimum of 1 is required by {who}.")
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    if not np.isfinite(X).all():
        raise ValueError(f"Input X contains {'NaN' if np.isnan(X).any() else 'infinity'}.\n{who} does not accept missing values encoded as NaN natively.")
    if least is not None and X.min() < least:
        raise ValueError(f"Negative values in data passed to {who}")
    return np.ascontiguousarray(X)
