//go:build !linux

package folder

import "errors"

// exchange is not to be had here; two renames take its place.
func exchange(a, b string) error { return errors.ErrUnsupported }
