#!/usr/bin/python3
"""Writes sparse_coo.npz, sparse_csr.npz and sparse_csc.npz with scipy.sparse.save_npz: one 4 x 5 matrix; and sparse_empty.npz, whose row 1 and column 0 are empty.

    cd data/testdata && ./sparse.py
"""
import numpy as np
import scipy.sparse as sp

rows, columns = np.array([3, 0, 2, 0, 1, 2, 3]), np.array([4, 1, 0, 3, 2, 2, 1])
values = np.array([0.5, 1, 2, -3, 4, 5.25, 6])
m = sp.coo_matrix((values, (rows, columns)), shape=(4, 5))
sp.save_npz("sparse_coo.npz", m, compressed=False)
sp.save_npz("sparse_csr.npz", m.tocsr().astype(np.float32))
sp.save_npz("sparse_csc.npz", m.tocsc().astype(np.float64))
sp.save_npz("sparse_empty.npz", sp.csr_matrix((np.array([2, 1, 4], dtype=np.int64), (np.array([0, 2, 2]), np.array([1, 1, 2]))), shape=(3, 3)))
