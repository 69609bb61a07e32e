package data_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"tessera/data"
	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// Pairs are counted as in a plain table, in both orders and sorted, in memory and in more parts of a file than are merged at once; and no file is left.
func TestTallyCounts(t *testing.T) {
	path, r := filepath.Join(t.TempDir(), "a.txt"), rand.New(rand.NewPCG(1, 2))
	type pair struct {
		a, b  int32
		count uint64
	}
	const numbers = 700
	tables := map[data.Budget]*data.Tally{}
	for _, budget := range []data.Budget{0, data.LeastBudget, 8 * data.LeastBudget, 1 << 30} {
		tables[budget] = data.NewTally(path, budget, false)
	}
	var counts [numbers][numbers]uint64
	for range 150000 {
		p := pair{int32(r.IntN(numbers)), int32(r.IntN(numbers)), 1 + r.Uint64N(1<<33)}
		if r.IntN(3) == 0 { // some are frequent
			p.a, p.b = p.a%9, numbers-1-p.b%9
		}
		for _, tally := range tables {
			tally.Add(p.a, p.b, p.count)
		}
		if counts[p.a][p.b] += p.count; p.a != p.b {
			counts[p.b][p.a] += p.count
		}
	}
	var want []pair
	for a := range counts {
		for b, count := range counts[a] {
			if count > 0 {
				want = append(want, pair{int32(a), int32(b), count})
			}
		}
	}
	for budget, tally := range tables {
		var got []pair
		fatal.If(t, tally.Each(t.Context(), func(a, b int32, count uint64) error {
			got = append(got, pair{a, b, count})
			return nil
		}))
		expect.Slice(t, got, want, "budget", budget)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) > 0 {
		t.Errorf("files are left: %q", left)
	}
	stopped, stop := context.WithCancel(t.Context())
	stop()
	tally := data.NewTally(path, data.LeastBudget, false)
	tally.Add(1, 2, 3)
	if err := tally.Each(stopped, func(int32, int32, uint64) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v of a command that was stopped", err)
	}
}

// Short rows are in memory if they and the lists of them take at most half of the budget.
func TestListsOfSamplesCountForTheBudget(t *testing.T) {
	const n = 30000
	for budget, onDisk := range map[data.Budget]bool{0: false, 2 * n * (4 + 24): false, 2*n*(4+24) - 1: true} {
		rows := data.NewRecording(filepath.Join(t.TempDir(), "a.txt"), budget, false, 1)
		for i := range n {
			fatal.If(t, rows.Add(float32(i)))
		}
		fatal.If(t, rows.Finish())
		images, err := rows.Images([]int{1}, nil)
		fatal.If(t, err)
		expect.Equal(t, images.OnDisk(), onDisk, "budget", budget)
	}
}
