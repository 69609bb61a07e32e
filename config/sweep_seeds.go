package config

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tessera/config/part/table"
)

func (p *sweepPlan) readSeeds(d *table.Decoder) {
	if seeds := p.node.Child("seeds"); seeds != nil && !d.Origin.Doubt("").About("seeds") {
		p.seeds = seedAxis(d, "", seeds)
	}
}

// readBySeed adds the keys of `by_seed` to the axis of the seeds. A setting consists of all seeds, so they are not swept keys.
func (p *sweepPlan) readBySeed(d *table.Decoder) {
	const key = "by_seed"
	if p.table.BySeed == nil || len(d.Found) > 0 {
		return
	}
	at := p.table.BySeed
	switch {
	case len(p.seeds) == 0:
		d.Report("", at, key+": the sweep has no seeds", "write seeds = [1, 2, 3] above")
		return
	case len(p.seeded) > 0:
		d.Report("", at, key+": a model of the sweep has other seeds", "declare a sweep of that model")
		return
	}
	r := axesReader{Decoder: d}
	for _, c := range r.columns(key, at, r.values) {
		if want := len(p.seeds[0][0].values); len(c.values) != want {
			d.Report(key, c.values[0], fmt.Sprintf("%s: got %d values for %d seeds", c.key, len(c.values), want), "give one value for each seed")
			return
		}
		if twice := slices.ContainsFunc(p.models, func(model string) bool { return p.of(model).has(c.key) }); twice {
			d.Report(key, c.values[0], fmt.Sprintf("%s is given twice", c.key), "give it in one of set, zip, random and by_seed")
			return
		}
		p.seeds[0] = append(p.seeds[0], c)
	}
}

// atBySeed returns an error at the table `by_seed`.
func (p *sweepPlan) atBySeed(problem string) table.Diagnostic {
	return table.Diagnostic{At: p.table.BySeed.Key, Subject: p.subject(), Problem: "by_seed: " + problem}.In(p.table.BySeed)
}

// seedAxis returns the axis of a key seeds of the table part. It is empty if the list is.
func seedAxis(d *table.Decoder, part string, seeds *table.Node) axes {
	if len(seeds.Items) == 0 {
		d.Report(part, seeds, "seeds: got an empty list, want at least one seed", "")
		return nil
	}
	refuseRepeated(d, part, "seeds", seeds.Items)
	return axes{{{key: seedKey, names: []string{"train", "seed"}, at: []table.Span{seeds.Key, seeds.Key}, values: seeds.Items}}}
}

// seedKey is the key to which a sweep assigns its seeds.
const seedKey = "train.seed"

// Seeds returns a change of a sweep that replaces the declared seeds by list, with one trial per seed. It returns an
// error for repeated seeds, seeds above 2⁶³ - 1 and an empty list.
func Seeds(list []uint64) (Set, error) {
	var texts []string
	for i, seed := range list {
		switch {
		case slices.Contains(list[:i], seed):
			return Set{}, fmt.Errorf("config: seeds: got %d twice, want different seeds", seed)
		case seed > math.MaxInt64: // TOML has no larger integers
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

// reseed replaces the seeds by those of the change s. The keys of `by_seed` have values only for the declared seeds.
func (p *sweepPlan) reseed(s Set) []table.Diagnostic {
	value := s.Root
	for _, name := range s.Path() {
		value = value.Child(name)
	}
	seeds := axis{{key: seedKey, names: s.Path(), at: []table.Span{s.At, s.At}, values: value.Items}}
	if p.table.BySeed != nil && len(p.seeds) > 0 {
		declared := p.seeds[0][slices.IndexFunc(p.seeds[0], func(c column) bool { return c.key == seedKey })]
		for _, c := range p.seeds[0] {
			if c.key == seedKey {
				continue
			}
			kept := c
			kept.values = nil
			for _, seed := range value.Items {
				i := slices.IndexFunc(declared.values, func(v *table.Node) bool { return v.String() == seed.String() })
				if i < 0 {
					return []table.Diagnostic{p.atBySeed(fmt.Sprintf("%s has no value for the seed %s of the option seeds, which is none of seeds", c.key, seed))}
				}
				kept.values = append(kept.values, c.values[i])
			}
			seeds = append(seeds, kept)
		}
	}
	p.seeds = axes{seeds}
	clear(p.seeded)
	return nil
}
