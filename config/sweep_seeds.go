package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera/part/table"
)

// Seeds is a change of a sweep: it replaces the declared seeds, with one trial per seed. Repeated seeds, seeds above
// 2⁶³ - 1 and an empty list are errors.
func Seeds(list []uint64) (Set, error) {
	var texts []string
	for i, seed := range list {
		switch {
		case slices.Contains(list[:i], seed):
			return Set{}, fmt.Errorf("config: seeds: got %d twice, want different seeds", seed)
		case seed > math.MaxInt64: // which TOML cannot hold
			return Set{}, fmt.Errorf("config: seeds: got %d, want at most %d", seed, math.MaxInt64)
		}
		texts = append(texts, strconv.FormatUint(seed, 10))
	}
	if len(list) == 0 {
		return Set{}, errors.New("config: seeds: got none, want at least one")
	}
	change, err := table.ParseChange(seedKey + "=[" + strings.Join(texts, ",") + "]")
	return Set{Change: change, seeds: strings.Join(texts, ",")}, err
}

// reseed replaces the seeds by those of a change.
func (p *sweepPlan) reseed(s Set) {
	value := s.Root
	for _, name := range s.Path() {
		value = value.Child(name)
	}
	p.seeds = axes{{{key: seedKey, names: s.Path(), at: []table.Span{s.At, s.At}, values: value.Items}}}
}
