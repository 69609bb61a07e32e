//go:build !unix || solaris || illumos || aix

package folder

import "os"

// lock does nothing: these systems cannot rename an open folder or have no suitable lock.
func lock(string) (*os.File, error) { return nil, nil }

func unlock(*os.File) error { return nil }

// Held reports false: without locks the answer is unknown.
func Held(string) bool { return false }
