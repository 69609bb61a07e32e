// Package baselines has the methods that are not trained by gradients through a graph: principal components, k-means and
// non-negative matrix factorisations. Each is a [metrics.Coder] from its first iteration on, so all metrics and figures of
// auto-encoders apply.
//
// A method is one file: a struct whose tagged fields are the keys of its table in models.toml, registered in
// [config.Baselines], and an unexported model that fits it. X are n images of p pixels in rows, H their codes (n x k),
// W the atoms (k x p), and X is approximated by H W (plus the mean image in pca).
//
// A fit depends only on its seed and its images, to the bit: work is divided by size, never by the number of processors. A
// fit that was interrupted, saved and restored ends in the same bytes as an uninterrupted one.
package baselines
