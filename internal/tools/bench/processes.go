package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// processContests returns the contests of training steps, by BenchmarkProcesses in package train. The peer is one process with
// several threads; ours are the same number of processes with one thread each.
func (s settings) processContests(launchers []string) []contest {
	ready := sync.OnceValues(s.buildSteps)
	var contests []contest
	for _, l := range launchers {
		launcher := strings.Fields(l)
		if len(launcher) == 0 {
			continue
		}
		for _, w := range []struct {
			model string
			times int // approximate factor by which a step takes longer
		}{{"shallow-nonneg-kl", 1}, {"simclr", 10}, {"asym-nonneg-kl", 10}} {
			steps := max(3, s.steps/w.times)
			run := func(threads int, command ...string) (result, error) {
				binary, err := ready()
				if err != nil {
					return result{}, err
				}
				return s.benchmark(steps, fmt.Sprintf("^BenchmarkProcesses$/^%s$/^threads=%d$", w.model, threads), append(command, binary)...)
			}
			contests = append(contests, contest{
				name: w.model + " " + l,
				peer: func() (result, error) { return run(s.threads) },
				ours: func() (result, error) {
					return run(1, slices.Concat(launcher, []string{"-n", strconv.Itoa(s.threads)})...)
				},
			})
		}
	}
	return contests
}
