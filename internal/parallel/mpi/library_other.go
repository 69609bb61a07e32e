//go:build !((linux || darwin) && (amd64 || arm64) && !android && !static)

package mpi

// Join returns a [*SetupError]: this build cannot load a library.
func Join(Options) (*Group, error) {
	return nil, setupf("this build of the program cannot load an MPI library; build it for linux or darwin on amd64 or arm64, without the tag static")
}
