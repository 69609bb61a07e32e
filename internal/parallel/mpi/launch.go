package mpi

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// Variable is the environment variable that names the library to load, by name or path. If it is not set, the library
// of the launcher is loaded.
const Variable = "TESSERA_MPI"

// Launch describes how a launcher started this process.
type Launch struct {
	By    string // "Open MPI's mpirun", "MPICH's mpirun" or "srun"
	Rank  int
	Size  int    // number of processes
	Local int    // number of processes on this machine; 1 if unknown
	Again string // command that starts the same number of processes, as in "mpirun -n 2"
}

// Names of the launchers.
const (
	byOpen  = "Open MPI's mpirun"
	byMPICH = "MPICH's mpirun"
	bySlurm = "srun"
)

// Launched returns how a launcher started this process. ok is false if neither mpirun nor srun started it.
func Launched() (l Launch, ok bool) { return launched(os.Getenv) }

func launched(env func(string) string) (l Launch, ok bool) {
	for _, v := range []struct{ by, rank, size, local string }{
		{byOpen, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
		{bySlurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", ""},
		{byMPICH, "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
	} {
		rank, err := strconv.Atoi(env(v.rank))
		size, wrong := strconv.Atoi(env(v.size))
		if err != nil || wrong != nil || rank < 0 || rank >= size {
			continue
		}
		if v.by == bySlurm && env("MPI_LOCALNRANKS") != "" { // MPICH's mpirun starts its helpers with srun
			continue
		}
		l = Launch{By: v.by, Rank: rank, Size: size}
		l.Local, _ = strconv.Atoi(env(v.local))
		if v.by == bySlurm {
			l.Local = tasksOf(env("SLURM_STEP_TASKS_PER_NODE"), env("SLURM_NODEID"))
		}
		l.Local = max(1, l.Local)
		l.Again = again(l, env)
		return l, true
	}
	return l, false
}

// Abort asks the launcher to end all processes with an exit code, as MPI_Abort does, for a process that has not loaded
// the library. The process should end afterwards. MPICH's mpirun reports 1 if it sees the connection of a process
// closed before it receives the exit code. Abort therefore sends the exit code in the protocol of this connection,
// PMI-1. Other launchers report the exit code with which the process ends.
func (l Launch) Abort(code int) {
	fd, err := strconv.Atoi(os.Getenv("PMI_FD"))
	if l.By != byMPICH || err != nil || fd < 3 {
		return
	}
	connection := os.NewFile(uintptr(fd), "PMI_FD")
	_, _ = fmt.Fprintf(connection, "cmd=abort exitcode=%d\n", code) // an error means that the launcher has already ended
}

// Program returns the program name of the launcher: mpirun or srun.
func (l Launch) Program() string {
	if l.By == bySlurm {
		return "srun"
	}
	return "mpirun"
}

// again returns a command that starts the same number of processes with the same launcher.
func again(l Launch, env func(string) string) string {
	command := l.Program()
	if l.By == bySlurm {
		if env("PMIX_RANK") != "" {
			command += " --mpi=pmix"
		} else if env("PMI_RANK") != "" {
			command += " --mpi=pmi2"
		}
	}
	return command + " -n " + strconv.Itoa(l.Size)
}

// tasksOf returns the number of tasks of a node from Slurm's list, such as "4(x2),3". It returns 0 if the list does not
// contain the node.
func tasksOf(list, node string) int {
	at, err := strconv.Atoi(node)
	if err != nil {
		return 0
	}
	for _, item := range strings.Split(list, ",") {
		count, times, repeated := strings.Cut(strings.TrimSuffix(item, ")"), "(x")
		n, err := strconv.Atoi(count)
		if err != nil {
			return 0
		}
		nodes := 1
		if repeated {
			nodes, _ = strconv.Atoi(times)
		}
		if at -= nodes; at < 0 {
			return n
		}
	}
	return 0
}

// Threads returns the number of CPUs for each process: the CPUs of the machine divided among its processes, at most
// those to which the launcher has bound the process, and at least 1.
func (l Launch) Threads() int {
	return max(1, min(runtime.GOMAXPROCS(0), online()/max(1, l.Local)))
}

// online returns the number of CPUs of the machine, whether or not this process is bound to them.
func online() int {
	text, err := os.ReadFile("/sys/devices/system/cpu/online")
	if err != nil {
		return runtime.NumCPU()
	}
	n := 0
	for _, part := range strings.Split(strings.TrimSpace(string(text)), ",") {
		from, to, ranged := strings.Cut(part, "-")
		first, err := strconv.Atoi(from)
		last := first
		if ranged && err == nil {
			last, err = strconv.Atoi(to)
		}
		if err != nil {
			return runtime.NumCPU()
		}
		n += last - first + 1
	}
	return n
}
