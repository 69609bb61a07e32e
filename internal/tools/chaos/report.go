package main

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"tessera/internal/samefiles"
)

// compare compares all files of two sweeps except those that depend on times and machines, and returns their number.
func compare(want, got string) (files int, err error) {
	one, err := samefiles.Files(want)
	if err != nil {
		return 0, err
	}
	several, err := samefiles.Files(got)
	if err != nil {
		return 0, err
	}
	if len(one) == 0 {
		return 0, fmt.Errorf("%s: no files to compare with", want)
	}
	if err := samefiles.Differ(several, one, false); err != nil {
		return 0, fmt.Errorf("one machine and the fleet differ: %w", err)
	}
	return len(one), nil
}

// results returns the number of rows of results.csv, and the number of rows with an error.
func results(path string) (rows, failed int) {
	text, err := os.ReadFile(filepath.Join(path, "results.csv"))
	if err != nil {
		return 0, 0
	}
	all, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	if err != nil {
		return 0, 0
	}
	for _, row := range all[1:] {
		rows++
		if row[len(row)-1] != "" {
			failed++
		}
	}
	return rows, failed
}

// report returns a description of the faults and their effects.
func (f *fleet) report(single, took time.Duration, files int) string {
	var b strings.Builder
	rows, failed := results(filepath.Join(f.dir, "fleet"))
	fmt.Fprintf(&b, "seed            %d\n", f.seed)
	fmt.Fprintf(&b, "results         %d of %d, %d failed; %d files equal to those of one machine\n", rows, f.trials, failed, files)
	for _, p := range append([]*process{f.coordinator}, f.workers...) {
		fmt.Fprintf(&b, "%-15s killed %d times, started %d times", p.name, p.kills, p.starts)
		if p.full > 0 {
			fmt.Fprintf(&b, ", ended %d times with a full disk", p.full)
		}
		fmt.Fprintln(&b)
	}
	var dropped, silenced, delayed int64
	for _, p := range f.proxies {
		dropped, silenced, delayed = dropped+p.dropped.Load(), silenced+p.silenced.Load(), delayed+p.delayed.Load()
	}
	kills := f.coordinator.kills
	for _, p := range f.workers {
		kills += p.kills
	}
	fmt.Fprintf(&b, "kills           %d\n", kills)
	fmt.Fprintf(&b, "connections     %d dropped, %d of these silent before, %d times delayed\n", dropped, silenced, delayed)
	clock := "worker 0 is 7 years slow"
	if f.wrong == "none" {
		clock = "right"
	}
	fmt.Fprintf(&b, "clock           %s\n", clock)
	log := f.coordinator.log.String()
	fmt.Fprintf(&b, "one machine     %.0f s; under chaos %.0f s\n", single.Seconds(), took.Seconds())
	fmt.Fprintf(&b, "results unusable, done again  %d\n", strings.Count(log, "cannot be used"))
	return b.String()
}
