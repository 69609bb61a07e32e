"""Estimators with fit, transform and inverse_transform. A fit writes the samples and a declaration, and trains it by the command."""

import json
import numbers
import pathlib
import tempfile

import numpy as np

from . import _command
from ._checks import BaseEstimator, NotFittedError, TransformerMixin, feature_names, matrix


def toml(value):
    """A value as TOML. JSON's spelling of texts, finite numbers, truth values and lists is also TOML's."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(str(key))} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value.item() if isinstance(value, np.generic) else value, ensure_ascii=False, allow_nan=False)


class Model(TransformerMixin, BaseEstimator):
    """Any model of Tessera.

    Parameters
    ----------
    declaration : str
        The keys of a table ``[model.NAME]`` of models.toml without ``dataset``, such as ``extends = "semi-nmf"`` or ``encoder = [...]``.
    shape : tuple of int, default None
        Shape of a sample, such as (28, 28) for images whose pixels are the features. None: a vector.
    validation : float in [0, 1), default 0
        Fraction of the samples that is held out, for early stopping and the measures in the folder of the run.
    out : path, default None
        Folder for the run, for ``tessera report`` and the other commands. It is replaced if it is there. None: the estimator alone keeps the run.
    random_state : int, RandomState or None
        Seed of the training. None draws one from NumPy's generator.

    Attributes
    ----------
    components_ : array (n_components, n_features)
        What each unit adds to a sample: the atoms. Only of models with a linear decoder; others have none.
    n_features_in_, n_components_ : int
    n_iter_ : int, epochs or iterations of the training
    """

    def __init__(self, declaration='extends = "nmf"', *, shape=None, validation=0.0, out=None, random_state=None):
        self.declaration = declaration
        self.shape = shape
        self.validation = validation
        self.out = out
        self.random_state = random_state

    _signed = True  # samples may be negative

    def _declare(self, samples):
        """The keys of the model."""
        return self.declaration

    def fit(self, X, y=None):
        """Train on samples (n_samples, n_features). y is ignored."""
        samples = self._checked(X)
        if len(samples) < 2:
            raise ValueError(f"found n_samples=1, while at least 2 are needed to fit {type(self).__name__}")
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            self._write(folder / "samples.npy", samples)
            dataset = toml({"name": "npy", "file": "samples.npy", "validation": self.validation or 0.0})
            (folder / "models.toml").write_text(f"[model.model]\ndataset = {dataset}\n{self._declare(samples)}\n", encoding="utf-8")
            out = pathlib.Path(self.out).resolve() if self.out is not None else folder / "run"
            _command.call(folder, "train", "model", "--quiet", "--force", "--seed", self._seed(), "--out", out)
            self._run = _command.packed(out)
        self.n_iter_ = json.loads(self._run["metrics.jsonl"].splitlines()[-1])["epoch"]
        self.n_features_in_ = samples.shape[1]
        self.__dict__.pop("feature_names_in_", None)
        if (names := feature_names(X)) is not None:
            self.feature_names_in_ = names
        self.n_components_ = self._encode(samples[:1]).shape[1]
        self._atoms()
        return self

    def transform(self, X):
        """The codes of samples: (n_samples, n_components)."""
        samples = self._samples(X)
        return self._encode(samples).astype(samples.dtype, copy=False)

    def inverse_transform(self, X):
        """The reconstructions of codes: (n_samples, n_features)."""
        self._fitted()
        codes = matrix(X, type(self).__name__)
        if codes.shape[1] != self.n_components_:
            raise ValueError(f"codes have {codes.shape[1]} values, but {type(self).__name__} has {self.n_components_} components")
        return self._decode(codes).astype(codes.dtype, copy=False)

    def score(self, X, y=None):
        """Minus the mean squared error of the reconstructions: larger is better, as grid searches need it."""
        samples = self._samples(X)
        return -float(np.mean((self._decode(self._encode(samples)) - samples) ** 2))

    def get_feature_names_out(self, input_features=None):
        self._fitted()
        return np.array([f"{type(self).__name__.lower()}{i}" for i in range(self.n_components_)], dtype=object)

    def _checked(self, X):
        return matrix(X, type(self).__name__, least=None if self._signed else 0)

    def _samples(self, X):
        self._fitted()
        samples = self._checked(X)
        if samples.shape[1] != self.n_features_in_:
            raise ValueError(f"X has {samples.shape[1]} features, but {type(self).__name__} is expecting {self.n_features_in_} features as input")
        return samples

    def _write(self, path, samples):
        if self.shape is not None and int(np.prod(self.shape)) != samples.shape[1]:
            raise ValueError(f"shape {tuple(self.shape)} has {int(np.prod(self.shape))} values, but a sample has {samples.shape[1]} features")
        np.save(path, samples if self.shape is None else samples.reshape(-1, *self.shape))

    def _seed(self):
        state = self.random_state
        if isinstance(state, numbers.Integral):
            return int(state)
        if state is None:
            state = np.random
        draw = state.integers if isinstance(state, np.random.Generator) else state.randint
        return int(draw(0, 2**31 - 1))

    def _fitted(self):
        if not hasattr(self, "_run"):
            raise NotFittedError(f"This {type(self).__name__} instance is not fitted yet. Call 'fit' with appropriate arguments before using this estimator.")

    def _use(self, command, array, flat):
        """What the command makes of an array, row by row."""
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            _command.unpack(self._run, folder / "run")
            self._write(folder / "in.npy", array) if flat else np.save(folder / "in.npy", array.astype(np.float32))
            _command.call(folder, command, "run", "--in", "in.npy", "--out", "out.npy")
            made = np.load(folder / "out.npy")
        return made.reshape(len(made), -1)

    def _encode(self, samples):
        return self._use("encode", samples, True)

    def _decode(self, codes):
        return self._use("decode", codes, False)

    def _atoms(self):
        """Set components_, if the decoder is linear: what codes of one 1 add to the reconstruction of zeros."""
        self.__dict__.pop("components_", None)
        n = self.n_components_
        try:
            made = self._decode(np.concatenate([np.zeros((1, n)), np.eye(n), np.full((1, n), 2.0)]))
        except _command.TesseraError:  # a model without a decoder
            return
        atoms = made[1:-1] - made[0]
        if np.allclose(made[-1] - made[0], 2 * atoms.sum(0), rtol=1e-3, atol=1e-5 * np.abs(atoms).sum(0).max(initial=1e-30)):
            self.components_ = atoms

    # scikit-learn's tags, of versions before and after 1.6
    def _more_tags(self):
        return {"requires_positive_X": not self._signed, "preserves_dtype": [np.float64, np.float32]}

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = not self._signed
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


class NMF(Model):
    """Non-negative matrix factorisation, X = H W with H, W >= 0.

    Parameters
    ----------
    n_components : int
    loss : "euclidean", "kl", "itakura_saito" or "beta"
    beta : float, the exponent of loss = "beta"
    l1_codes, l2_codes, l1_atoms, l2_atoms : float, weights of norms of codes and atoms
    init : "nndsvda", "nndsvd", "random" or None; None is nndsvda where there are as many samples and features as components, and random elsewhere
    max_iter : int
    tol : float, stop when an iteration lowers the objective by less than this fraction of it
    batch : int, mini-batch size; 0 means all samples
    out, random_state : see Model
    """

    _signed = False

    def __init__(self, n_components=10, *, loss="euclidean", beta=1.5, l1_codes=0.0, l2_codes=0.0, l1_atoms=0.0, l2_atoms=0.0, init=None,
                 max_iter=200, tol=1e-4, batch=0, out=None, random_state=None):
        self.n_components = n_components
        self.loss = loss
        self.beta = beta
        self.l1_codes = l1_codes
        self.l2_codes = l2_codes
        self.l1_atoms = l1_atoms
        self.l2_atoms = l2_atoms
        self.init = init
        self.max_iter = max_iter
        self.tol = tol
        self.batch = batch
        self.out = out
        self.random_state = random_state

    shape, validation = None, 0.0

    def _declare(self, samples):
        init = self.init or ("nndsvda" if self.n_components <= min(samples.shape) else "random")
        return keys(kind="nmf", components=self.n_components, solver="hals" if self.loss == "euclidean" else "mu", loss=self.loss, beta=self.beta,
                    l1_codes=self.l1_codes, l2_codes=self.l2_codes, l1_atoms=self.l1_atoms, l2_atoms=self.l2_atoms, init=init,
                    iterations=self.max_iter, tolerance=self.tol, batch=self.batch)


class SparseNMF(Model):
    """Non-negative matrix factorisation with codes or atoms of a given Hoyer sparsity.

    Parameters
    ----------
    n_components : int
    code_sparsity, atom_sparsity : float in [0, 1]; 0 does not constrain
    max_iter, tol, out, random_state : see NMF
    """

    _signed = False

    def __init__(self, n_components=10, *, code_sparsity=0.6, atom_sparsity=0.0, max_iter=200, tol=1e-4, out=None, random_state=None):
        self.n_components = n_components
        self.code_sparsity = code_sparsity
        self.atom_sparsity = atom_sparsity
        self.max_iter = max_iter
        self.tol = tol
        self.out = out
        self.random_state = random_state

    shape, validation = None, 0.0

    def _declare(self, samples):
        return keys(kind="sparse_nmf", components=self.n_components, code_sparsity=self.code_sparsity, atom_sparsity=self.atom_sparsity,
                    iterations=self.max_iter, tolerance=self.tol)


class SparseAutoencoder(Model):
    """A top-k sparse auto-encoder: a dictionary of directions, k of which make up a sample.

    Parameters
    ----------
    n_components : int, units of the dictionary
    k : int, units in use per sample
    epochs, batch : int
    learning_rate : float, of Adam
    validation, out, random_state : see Model
    """

    def __init__(self, n_components=256, *, k=16, epochs=50, batch=256, learning_rate=1e-3, validation=0.0, out=None, random_state=None):
        self.n_components = n_components
        self.k = k
        self.epochs = epochs
        self.batch = batch
        self.learning_rate = learning_rate
        self.validation = validation
        self.out = out
        self.random_state = random_state

    shape = None

    def _declare(self, samples):
        return keys(encoder=[{"kind": "dense", "units": self.n_components, "activation": "relu"}, {"kind": "top_k", "k": min(self.k, self.n_components)}],
                    decoder=[{"kind": "dense"}], loss=[{"kind": "mse"}], constraint=[{"kind": "unit_norm"}],
                    optimizer={"kind": "adam", "learning_rate": self.learning_rate},
                    train={"epochs": self.epochs, "batch": min(self.batch, len(samples)), "min_epoch_steps": 20})


class Parts(Model):
    """Non-negative parts: the shipped model parts-relative, or parts-vectors without a shape, whose settings follow the scale of the data.
    Spare components switch off.

    Parameters
    ----------
    n_components : int, the parts that are looked for, and some to spare
    shape : tuple of int, shape of an image; None for samples without neighbouring features
    epochs : int or None, None: as shipped
    validation, out, random_state : see Model
    """

    _signed = False

    def __init__(self, n_components=32, *, shape=None, epochs=None, validation=0.0, out=None, random_state=None):
        self.n_components = n_components
        self.shape = shape
        self.epochs = epochs
        self.validation = validation
        self.out = out
        self.random_state = random_state

    def _declare(self, samples):
        train = {} if self.epochs is None else {"train": {"epochs": self.epochs}}
        if self.shape is None:
            unrolled, extends = {"kind": "unrolled", "units": self.n_components, "steps": 16, "method": "splitting", "rho": 0.03}, "parts-vectors"
        else:
            unrolled, extends = {"kind": "unrolled", "units": self.n_components, "steps": 16}, "parts-relative"
        return keys(extends=extends, encoder=[{"kind": "relative", "layers": [unrolled]}], **train)


def keys(**values):
    """The keys of a table."""
    return "\n".join(f"{key} = {toml(value)}" for key, value in values.items())
