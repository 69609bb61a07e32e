package coder_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tessera"
	"tessera/config"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/lists"
)

// A model of sequences in which each number is followed by the next one of 0 to 4 draws these, from the numbers that may be drawn.
func TestDrawnNumbersFollowThoseBeforeThem(t *testing.T) {
	dir := t.TempDir()
	var table strings.Builder
	table.WriteString("a,b,c,d\n")
	for i := range 200 {
		fmt.Fprintf(&table, "%d,%d,%d,%d\n", i%5, (i+1)%5, (i+2)%5, (i+3)%5)
	}
	fatal.If(t, os.WriteFile(filepath.Join(dir, "x.csv"), []byte(table.String()), 0o600))
	var changes []config.Set
	for _, change := range []string{fmt.Sprintf("dataset={file=%q}", filepath.Join(dir, "x.csv")), "train.epochs=6", "train.batch=8", "optimizer.learning_rate=0.02",
		`encoder=[{kind="embedding", vocabulary=5, units=8}, {kind="position"}, {kind="transformer", heads=1, causal=true}, {kind="layer_norm"}]`,
		`head.next={from="encoder.3", layers=[{kind="token_dense", units=5}]}`, `loss=[{kind="next_token"}]`} {
		set, err := config.ParseSet(change)
		fatal.If(t, err)
		changes = append(changes, set)
	}
	m, err := tessera.Shipped().Model("gpt-grammar", changes...)
	fatal.If(t, err)
	run, err := tessera.Train(context.Background(), m, tessera.Options{Out: filepath.Join(dir, "run"), Threads: 1})
	fatal.If(t, err)
	defer run.Close()
	firsts := lists.Of(100, func(i int) int32 { return int32(i % 5) })
	all := func(int32) bool { return true }
	drawn, err := run.DrawNumbers(context.Background(), firsts, 1, all)
	fatal.If(t, err)
	right := 0
	for i, k := range drawn {
		if i%4 == 0 && k != firsts[i/4] {
			t.Fatalf("sequence %d begins with %d, want %d", i/4, k, firsts[i/4])
		}
		if i%4 > 0 && k == (drawn[i-1]+1)%5 {
			right++
		}
	}
	if len(drawn) != 400 || right < 290 {
		t.Errorf("of %d numbers, %d of 300 are those behind the ones before them", len(drawn), right)
	}
	few, err := run.DrawNumbers(context.Background(), firsts[:3], 1, all)
	fatal.If(t, err)
	expect.Slice(t, few, drawn[:12], "the first sequences depend on the number of sequences")
	some, err := run.DrawNumbers(context.Background(), []int32{0, 0}, 1, func(k int32) bool { return k < 2 })
	if fatal.If(t, err); slices.Max(some) > 1 {
		t.Errorf("got %v, want numbers below 2", some)
	}
	expect.AnyError(t, expect.Err(run.DrawNumbers(context.Background(), []int32{7}, 1, all)), "a number that the model has not: no error")
}
