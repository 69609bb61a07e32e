//go:build !linux

package folder

import "errors"

// exchange is not available on this platform; two renames take its place.
func exchange(a, b string) error { return errors.ErrUnsupported }
