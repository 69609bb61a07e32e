"""Estimators as scikit-learn expects them: python3 -m unittest discover python/tests."""

import pathlib
import pickle
import sys
import tempfile
import unittest

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import tessera  # noqa: E402

try:
    import sklearn
    from sklearn.base import clone
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.utils.estimator_checks import check_estimator
except ImportError:
    sklearn = None


def mixtures(samples=120, parts=4, features=12, seed=0):
    """Sparse mixtures of non-negative parts, each of three features of its own."""
    draw = np.random.default_rng(seed)
    codes = draw.random((samples, parts)) * (draw.random((samples, parts)) > 0.5)
    atoms = np.kron(np.eye(parts), np.ones(features // parts))
    return codes @ atoms, atoms


def small():
    return [
        tessera.NMF(3, random_state=0),
        tessera.SparseNMF(3, random_state=0),
        tessera.SparseAutoencoder(8, k=2, epochs=2, random_state=0),
        tessera.Parts(4, epochs=2, random_state=0),
        tessera.Model("kind = \"pca\"\ncomponents = 1", random_state=0),
    ]


class Estimators(unittest.TestCase):
    def test_parts_are_found(self):
        X, atoms = mixtures()
        fitted = tessera.NMF(4, random_state=1, max_iter=2000, tol=1e-7).fit(X)
        unit = lambda rows: rows / np.linalg.norm(rows, axis=1, keepdims=True)
        self.assertGreater((unit(atoms) @ unit(fitted.components_).T).max(1).min(), 0.99)
        np.testing.assert_allclose(fitted.transform(X) @ fitted.components_, fitted.inverse_transform(fitted.transform(X)), atol=1e-4)

    def test_one_seed_gives_equal_codes_and_a_pickle_keeps_them(self):
        X, _ = mixtures()
        for model in [*small(), tessera.Parts(4, shape=(3, 4), epochs=2, random_state=0)]:
            with self.subTest(model=model):
                codes = model.fit(X).transform(X)
                np.testing.assert_array_equal(codes, model.fit(X).transform(X))
                np.testing.assert_array_equal(codes, pickle.loads(pickle.dumps(model)).transform(X))
                self.assertEqual(codes.shape, (len(X), model.n_components_))

    def test_the_run_is_kept_where_it_is_asked_for(self):
        with tempfile.TemporaryDirectory() as folder:
            out = pathlib.Path(folder, "run")
            tessera.NMF(2, out=out).fit(mixtures()[0])
            self.assertTrue((out / "model.safetensors").is_file())

    def test_mistakes_are_said(self):
        X, _ = mixtures()
        for made, error, said in [
            (lambda: tessera.NMF(3).transform(X), ValueError, "not fitted"),
            (lambda: tessera.NMF(3).fit(-X), ValueError, "Negative values"),
            (lambda: tessera.NMF(0).fit(X), tessera.TesseraError, "components"),
            (lambda: tessera.Model("encoder = 3").fit(X), tessera.TesseraError, "encoder"),
            (lambda: tessera.Parts(4, shape=(5, 5)).fit(X), ValueError, "25 values"),
            (lambda: tessera.NMF(3).set_params(units=3), ValueError, "units"),
        ]:
            with self.subTest(said=said), self.assertRaisesRegex(error, said):
                made()

    @unittest.skipIf(sklearn is None, "scikit-learn is not installed")
    def test_grid_search_clone_and_pipeline(self):
        X, _ = mixtures()
        search = GridSearchCV(tessera.NMF(2, random_state=0), {"n_components": [2, 4]}, cv=2).fit(X)
        self.assertEqual(search.best_params_, {"n_components": 4})
        self.assertEqual(clone(search.best_estimator_).n_components, 4)
        self.assertEqual(make_pipeline(tessera.NMF(4), tessera.NMF(2)).fit_transform(X).shape, (len(X), 2))

    @unittest.skipIf(sklearn is None, "scikit-learn is not installed")
    def test_scikit_learn_accepts_them(self):
        for model in small():
            failed = {}
            for estimator, check in check_estimator(model, generate_only=True):
                try:
                    check(estimator)
                except unittest.SkipTest:
                    pass
                except Exception as error:  # each check is reported
                    failed[check.func.__name__] = error
            with self.subTest(model=model):
                self.assertEqual(failed, {})


if __name__ == "__main__":
    unittest.main()
