package mpi_test

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"tessera/internal/expect"
	"tessera/internal/parallel/collective"
	"tessera/internal/parallel/mpi"
)

// rankVariable names the function that a process of this test binary runs if mpirun has started it.
const rankVariable = "TESSERA_TEST_RANK"

var mpirun = flag.String("mpirun", "", "the mpirun to test with, for example mpirun.openmpi or mpirun.mpich")

func TestMain(m *testing.M) {
	if work := os.Getenv(rankVariable); work != "" {
		os.Exit(rank(work))
	}
	flag.Parse()
	os.Exit(m.Run())
}

// launch runs one of the functions in ranks on n processes and returns their output.
func launch(t *testing.T, n int, work string) (string, error) {
	t.Helper()
	if *mpirun == "" {
		t.Skip("needs mpirun: go test ./parallel/mpi -mpirun mpirun.openmpi, or make mpi")
	}
	cmd := exec.Command(*mpirun, "-n", strconv.Itoa(n), os.Args[0])
	cmd.Env = append(os.Environ(), rankVariable+"="+work, "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "OMPI_MCA_rmaps_base_oversubscribe=1")
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// ranks lists the functions that the processes of a test run.
var ranks = map[string]func(g *mpi.Group) error{
	"sums":  sums,
	"times": times,
}

func rank(work string) int {
	g, err := mpi.Join(mpi.Options{Deadline: time.Minute})
	if err == nil {
		err = ranks[work](g)
	}
	if err == nil {
		err = g.Close()
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
}

// sums compares every operation with the same operation of a local group.
func sums(g *mpi.Group) error {
	for _, n := range []int{0, 1, 3, 1000, 100_003} {
		value := func(i, rank int) float32 { return 1 / float32(3*i+7*rank+1) }
		got, want := make([]float32, n), make([]float32, n)
		for i := range got {
			got[i] = value(i, g.Rank())
			want[i] = value(i, 0)
			for r := 1; r < g.Size(); r++ {
				want[i] += value(i, r)
			}
		}
		other := []float64{float64(g.Rank())}
		first, err := g.Start(collective.Sum, got)
		if err != nil {
			return err
		}
		if err := g.AllReduce(collective.Max, other); err != nil {
			return err
		}
		if err := first.Wait(); err != nil {
			return err
		}
		if !slices.Equal(got, want) || other[0] != float64(g.Size()-1) {
			return fmt.Errorf("rank %d: another sum of %d values", g.Rank(), n)
		}
	}
	counts, all, total := make([]int, g.Size()), []uint64(nil), 0
	for r := range counts {
		counts[r] = 10 * r
		for i := range counts[r] {
			all = append(all, uint64(100*r+i))
		}
		total += counts[r]
	}
	from := total
	for _, c := range counts[g.Rank():] {
		from -= c
	}
	gathered := make([]uint64, total)
	if err := g.AllGather(all[from:from+counts[g.Rank()]], counts, gathered); err != nil || !slices.Equal(gathered, all) {
		return fmt.Errorf("rank %d gathers %v (%v)", g.Rank(), gathered, err)
	}
	text := make([]byte, 5)
	if g.Rank() == g.Size()-1 {
		copy(text, "hello")
	}
	if err := g.Broadcast(g.Size()-1, text); err != nil || string(text) != "hello" {
		return fmt.Errorf("rank %d gets %q (%v)", g.Rank(), text, err)
	}
	if g.Rank() == 0 {
		fmt.Printf("sums of %d agree, %s\n", g.Size(), g.Version())
	}
	return nil
}

// times measures the duration of all-reduces.
func times(g *mpi.Group) error {
	for _, n := range []int{1, 100, 10_000, 395_000} {
		var values any = make([]float32, n)
		var took []time.Duration
		for range 200 {
			if err := g.Barrier(); err != nil {
				return err
			}
			began := time.Now()
			if err := g.AllReduce(collective.Sum, values); err != nil {
				return err
			}
			took = append(took, time.Since(began))
		}
		slices.Sort(took)
		if g.Rank() == 0 {
			fmt.Printf("all-reduce of %d floats: median %v, least %v\n", n, took[len(took)/2], took[0])
		}
	}
	return nil
}

func TestOperationsAgreeWithLocalOnes(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4} {
		out, err := launch(t, n, "sums")
		if err != nil || !strings.Contains(out, fmt.Sprintf("sums of %d agree", n)) {
			t.Errorf("%d processes: %v\n%s", n, err, out)
		}
		t.Log(strings.TrimSpace(out))
	}
}

func TestTimesOfAllReduces(t *testing.T) {
	out, err := launch(t, 2, "times")
	expect.NoError(t, err, out)
	t.Log("\n" + out)
}
