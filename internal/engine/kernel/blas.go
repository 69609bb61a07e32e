//go:build (linux || darwin) && (amd64 || arm64) && !android && !static

package kernel

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library is a loaded BLAS.
type library struct {
	path         string // path as given to the loader
	core         string // CPU for which the library's kernels are made, as reported by the library
	threading    string // serial, pthread, openmp or ""
	sgemm, dgemm uintptr
}

// blasNames lists the libraries to try, in this order, if no library is named. On macOS these are the paths of Homebrew
// and MacPorts. On Linux, Debian's folders come first, then the names by which the loader finds the libraries of
// Debian, Fedora and Arch. Builds with POSIX threads come first, because several goroutines may call them. Builds with
// OpenMP are not listed; see load.
func blasNames() []string {
	if runtime.GOOS == "darwin" {
		return []string{
			"/opt/homebrew/opt/openblas/lib/libopenblas.dylib", "/usr/local/opt/openblas/lib/libopenblas.dylib",
			"/opt/local/lib/libopenblas.dylib", "libopenblas.dylib",
		}
	}
	names := []string{}
	for _, build := range []string{"openblas-pthread", "openblas-serial"} {
		found, _ := filepath.Glob("/usr/lib/*/" + build + "/libopenblas.so.0")
		for _, path := range found {
			if strings.Contains(path, debianArch()) {
				names = append(names, path)
			}
		}
	}
	return append(names, "libopenblasp.so.0", "libopenblas.so.0", "libopenblas.so")
}

// debianArch returns the name of Debian's library folder for this architecture, because libraries of other
// architectures may be installed too.
func debianArch() string {
	if runtime.GOARCH == "arm64" {
		return "/aarch64-"
	}
	return "/x86_64-"
}

// openBLAS loads the library with the given name or path, or the best installed library if name is empty.
func openBLAS(name string) (*library, error) {
	if name != "" {
		return load(name)
	}
	names := blasNames()
	for _, name := range names {
		if lib, err := load(name); err == nil {
			return lib, nil
		}
	}
	return nil, fmt.Errorf("no OpenBLAS found (looked for %s)", strings.Join(names, ", "))
}

// load opens a library and checks that several goroutines may call it. The caller divides the rows among goroutines, so
// each call must run on one thread. For builds with POSIX threads, describe sets the number of threads to one. Builds
// with OpenMP have a separate number for each calling thread. Only the environment at the start of the process limits
// all of them, and this package does not change the environment.
func load(name string) (*library, error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() { // for a named pipe, the loader would wait for a writer
		return nil, fmt.Errorf("%s: is not a regular file", name)
	}
	handle, err := dlopen(name)
	if err != nil {
		return nil, err
	}
	lib := &library{path: name}
	if lib.sgemm, err = purego.Dlsym(handle, "sgemm_"); err != nil {
		return nil, err
	}
	if lib.dgemm, err = purego.Dlsym(handle, "dgemm_"); err != nil {
		return nil, err
	}
	config := lib.describe(handle)
	if lib.threading == "serial" && !strings.Contains(config, "USE_LOCKING") {
		return nil, fmt.Errorf("%s: a build without threads and without locks: two goroutines cannot call it safely", name)
	}
	if lib.threading == "openmp" && os.Getenv("OMP_NUM_THREADS") != "1" && os.Getenv("OPENBLAS_NUM_THREADS") != "1" {
		return nil, fmt.Errorf("%s: a build with OpenMP starts its own threads in every call: start the process with OMP_NUM_THREADS=1, or name a build with POSIX threads", name)
	}
	return lib, lib.verify()
}

// dlopen loads a library and then restores the floating-point modes of the thread. A library built with -ffast-math
// disables denormals when it is loaded.
func dlopen(name string) (uintptr, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	modes := floatModes()
	defer setFloatModes(modes)
	return purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
}

// describe reads the build of OpenBLAS and sets the number of its threads to one. Other BLAS libraries lack these
// functions.
func (l *library) describe(handle uintptr) (config string) {
	if f, err := purego.Dlsym(handle, "openblas_set_num_threads"); err == nil {
		purego.SyscallN(f, 1)
	}
	if f, err := purego.Dlsym(handle, "openblas_get_corename"); err == nil {
		var name func() string
		purego.RegisterFunc(&name, f)
		l.core = name()
	}
	if f, err := purego.Dlsym(handle, "openblas_get_parallel"); err == nil {
		kind, _, _ := purego.SyscallN(f)
		l.threading = [...]string{"serial", "pthread", "openmp", ""}[min(kind&0xff, 3)]
	}
	if f, err := purego.Dlsym(handle, "openblas_get_config"); err == nil {
		var text func() string
		purego.RegisterFunc(&text, f)
		config = text()
	}
	return config
}

// verify multiplies two small matrices, to detect a library that has the same function names but other conventions.
func (l *library) verify() error {
	a, b := []float32{1, 2, 3, 4, 5, 6}, []float32{7, 8, 9, 10, 11, 12}
	want := [4]float32{58, 64, 139, 154}
	c := make([]float32, 4)
	l.gemm32(false, false, 2, 2, 3, 1, a, 3, b, 2, 0, c, 2)
	if [4]float32(c) != want {
		return fmt.Errorf("%s: sgemm_ gives %v instead of %v", l.path, c, want)
	}
	return nil
}

// call contains the arguments of one product. It is on the heap because C receives the addresses of the arguments, and
// a goroutine's stack may move at any call. Its pointers keep the operands alive, and on the heap, until the call
// returns. Integers have 64 bits, which works for libraries with 32-bit and with 64-bit integers.
type call[T Float] struct {
	transA, transB         byte
	m, n, k, lda, ldb, ldc int64
	alpha, beta            T
	a, b, c                *T
	arguments              [15]uintptr
}

func newCall[T Float]() *call[T] {
	x := &call[T]{}
	at := func(p unsafe.Pointer) uintptr { return uintptr(p) }
	x.arguments = [15]uintptr{
		at(unsafe.Pointer(&x.transA)), at(unsafe.Pointer(&x.transB)),
		at(unsafe.Pointer(&x.m)), at(unsafe.Pointer(&x.n)), at(unsafe.Pointer(&x.k)),
		at(unsafe.Pointer(&x.alpha)), 0, at(unsafe.Pointer(&x.lda)), 0, at(unsafe.Pointer(&x.ldb)),
		at(unsafe.Pointer(&x.beta)), 0, at(unsafe.Pointer(&x.ldc)),
		1, 1, // hidden arguments of Fortran: the lengths of the two strings
	}
	return x
}

var (
	calls32 = pool[call[float32]]{fresh: newCall[float32]}
	calls64 = pool[call[float64]]{fresh: newCall[float64]}
)

func (l *library) gemm32(transA, transB bool, m, n, k int, alpha float32, a []float32, lda int, b []float32, ldb int, beta float32, c []float32, ldc int) {
	gemmFortran(l.sgemm, &calls32, transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

func (l *library) gemm64(transA, transB bool, m, n, k int, alpha float64, a []float64, lda int, b []float64, ldb int, beta float64, c []float64, ldc int) {
	gemmFortran(l.dgemm, &calls64, transA, transB, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc)
}

// gemmFortran calls xgemm_, which expects column-major matrices. A row-major matrix in column-major order is its
// transpose, so the call computes C' = B' A'.
func gemmFortran[T Float](xgemm uintptr, calls *pool[call[T]], transA, transB bool, m, n, k int, alpha T, a []T, lda int, b []T, ldb int, beta T, c []T, ldc int) {
	checkGemm(transA, transB, m, n, k, len(a), lda, len(b), ldb, len(c), ldc)
	if m == 0 || n == 0 || k == 0 || alpha == 0 {
		scaleRows(m, n, beta, c, ldc)
		return
	}
	x := calls.take()
	x.transA, x.transB = fortran(transB), fortran(transA)
	x.m, x.n, x.k = int64(n), int64(m), int64(k)
	x.lda, x.ldb, x.ldc = int64(ldb), int64(lda), int64(ldc)
	x.alpha, x.beta = alpha, beta
	x.a, x.b, x.c = &b[0], &a[0], &c[0]
	x.arguments[6], x.arguments[8], x.arguments[11] = uintptr(unsafe.Pointer(x.a)), uintptr(unsafe.Pointer(x.b)), uintptr(unsafe.Pointer(x.c))
	purego.SyscallN(xgemm, x.arguments[:]...)
	runtime.KeepAlive(x)
	x.a, x.b, x.c = nil, nil, nil
	calls.give(x)
}

func fortran(trans bool) byte {
	if trans {
		return 'T'
	}
	return 'N'
}
