//go:build !linux

package folder

import "errors"

// exchange is not available on this platform: it returns an error, and the caller uses two renames instead.
func exchange(a, b string) error { return errors.ErrUnsupported }
