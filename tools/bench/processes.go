package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// processContests are training steps of BenchmarkProcesses in package train: the peer is one process, ours are as many processes
// of one thread as it has threads.
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
			times int // how many times longer a step takes, about
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
