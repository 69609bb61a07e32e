//go:build (linux || darwin) && (amd64 || arm64) && !android && !static

package mpi

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// library is a loaded MPI library. Its handles are pointers in Open MPI and integers in MPICH.
type library struct {
	path      string
	open      bool // the library has the ABI of Open MPI; otherwise it has that of MPICH
	functions [len(functionNames)]uintptr
	world     uintptr // MPI_COMM_WORLD
	bytes     uintptr // MPI_BYTE
	returns   uintptr // MPI_ERRORS_RETURN
	anyone    int     // MPI_ANY_SOURCE
	sleep     uintptr // usleep of the C library
	yield     uintptr // sched_yield

	// Memory for the results of a call.
	text   [16384]byte
	status [8]uint64
	length int32
	number int32
}

// Indices of the functions of the library.
const (
	fInitThread = iota
	fCommRank
	fCommSize
	fSetErrhandler
	fIsend
	fIrecv
	fTest
	fAbort
	fFinalize
	fErrorString
	fVersion
	fGetCount
	fCancel
)

var functionNames = [...]string{"MPI_Init_thread", "MPI_Comm_rank", "MPI_Comm_size", "MPI_Comm_set_errhandler", "MPI_Isend", "MPI_Irecv",
	"MPI_Test", "MPI_Abort", "MPI_Finalize", "MPI_Error_string", "MPI_Get_library_version", "MPI_Get_count", "MPI_Cancel"}

// names lists the file names under which the library of a launcher may be found.
func names(l Launch) (list []string) {
	open, mpich := []string{"libmpi.so.40", "libmpi.so"}, []string{"libmpich.so.12", "libmpi.so.12", "libmpich.so"}
	if runtime.GOOS == "darwin" {
		open, mpich = []string{"libmpi.40.dylib", "libmpi.dylib"}, []string{"libmpi.12.dylib", "libmpich.dylib"}
	}
	kinds := [][]string{open}
	switch {
	case l.By == byMPICH:
		kinds = [][]string{mpich}
	case l.By == bySlurm && os.Getenv("PMI_FD") != "": // srun --mpi=pmi2
		kinds = [][]string{mpich, open}
	case l.By == bySlurm:
		kinds = [][]string{open, mpich}
	}
	for _, names := range kinds {
		for _, dir := range append(folders(), "") {
			for _, name := range names {
				if path := filepath.Join(dir, name); dir == "" || isFile(path) {
					list = append(list, path)
				}
			}
		}
	}
	return list
}

// folders lists library folders next to the launcher. The loader does not search a private installation of MPI.
func folders() (list []string) {
	roots := []string{os.Getenv("OPAL_PREFIX")}
	if path, err := exec.LookPath("mpirun"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			roots = append(roots, filepath.Dir(filepath.Dir(path)))
		}
	}
	for _, root := range roots {
		if root != "" && root != "/usr" {
			list = append(list, filepath.Join(root, "lib"), filepath.Join(root, "lib64"))
		}
	}
	return append(list, "/opt/homebrew/lib")
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// load opens the library of a launcher, or the library with the given name or path if name is not empty.
func load(l Launch, name string) (*library, error) {
	quiet()
	list := []string{name}
	if name == "" {
		list = names(l)
	}
	for _, path := range list {
		handle, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			if name != "" {
				return nil, setupf("%s=%s cannot be loaded (%v); name the library of %s, or unset the variable", Variable, name, err, l.By)
			}
			continue
		}
		lib, err := describe(path, handle)
		if err != nil {
			return nil, err
		}
		return lib, lib.serves(l)
	}
	return nil, setupf("no library of %s found (looked for %s); install it, or set %s to its path", l.By, strings.Join(list, ", "), Variable)
}

// quiet stops UCX and Open MPI from replacing Go's signal handlers, which turn a SIGSEGV into a panic. It sets
// variables in the C library's environment, which is separate from Go's.
func quiet() {
	at, err := purego.Dlsym(purego.RTLD_DEFAULT, "setenv")
	if err != nil {
		return
	}
	var setenv func(name, value string, overwrite int32) int32
	purego.RegisterFunc(&setenv, at)
	setenv("UCX_ERROR_SIGNALS", "", 0)
	setenv("UCX_HANDLE_ERRORS", "none", 0) // otherwise UCX prints the C stack
	setenv("OMPI_MCA_opal_signal", "", 0)
}

// describe finds the functions of a library and determines which of the two ABIs it has.
func describe(path string, handle uintptr) (*library, error) {
	lib := &library{path: path, world: 0x44000000, bytes: 0x4c00010d, returns: 0x54000001, anyone: -2}
	var missing error
	find := func(name string) uintptr {
		at, err := purego.Dlsym(handle, name)
		missing = errors.Join(missing, err)
		return at
	}
	for i, name := range functionNames {
		lib.functions[i] = find(name)
	}
	if world, err := purego.Dlsym(handle, "ompi_mpi_comm_world"); err == nil {
		lib.open, lib.world, lib.anyone = true, world, -1
		lib.bytes, lib.returns = find("ompi_mpi_byte"), find("ompi_mpi_errors_return")
	}
	handle = purego.RTLD_DEFAULT
	lib.sleep, lib.yield = find("usleep"), find("sched_yield")
	if missing != nil {
		return nil, setupf("%s is neither Open MPI nor MPICH (%v); set %s to the library of the launcher", path, missing, Variable)
	}
	return lib, nil
}

// serves returns an error if the library does not belong to the launcher's MPI. Each process would then be alone in its
// group.
func (lib *library) serves(l Launch) error {
	switch {
	case l.By == byOpen && !lib.open:
		return setupf("%s is MPICH, but %s started this process; unset %s, or start it with MPICH's mpirun", lib.path, l.By, Variable)
	case l.By == byMPICH && lib.open:
		return setupf("%s is Open MPI, but %s started this process; unset %s, or start it with Open MPI's mpirun", lib.path, l.By, Variable)
	}
	return nil
}

// call calls a function of the library. The error contains the library's text.
func (lib *library) call(function int, arguments ...uintptr) error {
	code, _, _ := purego.SyscallN(lib.functions[function], arguments...)
	if int32(code) == 0 {
		return nil
	}
	lib.length = 0
	purego.SyscallN(lib.functions[fErrorString], code, address(&lib.text[0]), address(&lib.length))
	return &CallError{functionNames[function], lib.written()}
}

// written returns the text that the library wrote to its memory last.
func (lib *library) written() string {
	return string(lib.text[:max(0, min(int(lib.length), len(lib.text)))])
}

func (lib *library) version() string {
	lib.length = 0
	purego.SyscallN(lib.functions[fVersion], address(&lib.text[0]), address(&lib.length))
	line, _, _ := strings.Cut(lib.written(), "\n")
	return strings.TrimSpace(line)
}

// address returns the address of a field of a library. Libraries are on the heap, where objects do not move.
func address[T any](p *T) uintptr { return uintptr(unsafe.Pointer(p)) }

func (lib *library) join() (rank, size int, err error) {
	if err := lib.call(fInitThread, 0, 0, serialized, address(&lib.number)); err != nil {
		return 0, 0, err
	}
	if lib.number < serialized {
		return 0, 0, setupf("%s was built for a single thread (it provides level %d, want MPI_THREAD_SERIALIZED, %d); use another build", lib.path, lib.number, serialized)
	}
	if err := lib.call(fSetErrhandler, lib.world, lib.returns); err != nil {
		return 0, 0, err
	}
	if err := lib.call(fCommRank, lib.world, address(&lib.number)); err != nil {
		return 0, 0, err
	}
	rank = int(lib.number)
	err = lib.call(fCommSize, lib.world, address(&lib.number))
	return rank, int(lib.number), err
}

// serialized is MPI_THREAD_SERIALIZED: any thread may call the library, one at a time.
const serialized = 2

func (lib *library) post(m *message, tag int) error {
	function, peer := fIsend, m.peer
	if m.receives {
		function = fIrecv
	}
	if peer == anyone {
		peer = lib.anyone
	}
	return lib.call(function, uintptr(m.at), uintptr(m.bytes), lib.bytes, uintptr(peer), uintptr(tag), lib.world, address(&m.request))
}

func (lib *library) test(m *message) (done bool, err error) {
	lib.number = 0
	if err := lib.call(fTest, address(&m.request), address(&lib.number), address(&lib.status)); err != nil || lib.number == 0 {
		return false, err
	}
	if !m.receives {
		return true, nil
	}
	err = lib.call(fGetCount, address(&lib.status), lib.bytes, address(&lib.number))
	m.got = int(lib.number)
	return true, err
}

func (lib *library) cancel(m *message) error { return lib.call(fCancel, address(&m.request)) }
func (lib *library) abort(code int)          { _ = lib.call(fAbort, lib.world, uintptr(code)) }
func (lib *library) finalize() error         { return lib.call(fFinalize) }

func (lib *library) pause(d time.Duration) {
	if d == 0 {
		purego.SyscallN(lib.yield)
		return
	}
	purego.SyscallN(lib.sleep, uintptr(d.Microseconds()))
}

// Join loads the library of the launcher and joins its group. All processes must call it. It returns a [*SetupError] if
// no launcher started the process, or if the library is missing or does not belong to the launcher.
func Join(o Options) (*Group, error) {
	l, ok := Launched()
	if !ok {
		return nil, setupf("this process was started by neither mpirun nor srun; start it with `mpirun -n 4 COMMAND`, or train without the option distributed")
	}
	lib, err := load(l, os.Getenv(Variable))
	if err != nil {
		return nil, err
	}
	return join(lib, l, o)
}
