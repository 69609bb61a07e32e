//go:build !unix || solaris || illumos || aix

package folder

import "os"

// noFollow is 0: these systems have no flag of open that refuses symbolic links. [Open] refuses them before.
const noFollow = 0

// lock does nothing: these systems cannot rename an open folder or have no suitable lock.
func lock(string) (*os.File, error) { return nil, nil }

func unlock(*os.File) error { return nil }

// Held reports false: without locks the answer is unknown.
func Held(string) bool { return false }
