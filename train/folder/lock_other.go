//go:build !unix || solaris || illumos || aix

package folder

import "os"

// lock does nothing: these systems cannot rename a folder that is held open, or have no such lock.
func lock(string) (*os.File, error) { return nil, nil }

func unlock(*os.File) error { return nil }
