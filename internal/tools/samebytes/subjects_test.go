package main

import (
	"slices"
	"testing"
)

func TestShortened(t *testing.T) {
	for name, c := range map[string]struct {
		settings map[string]string
		want     []string
	}{
		"auto-encoder": {map[string]string{"dataset.limit": "0", "train.epochs": "500", "train.batch": "128", "train.seed": "1"},
			sets("dataset.limit=256", "train.batch=64", "train.epochs=2")},
		"baseline": {map[string]string{"dataset.limit": "0", "iterations": "200", "train.seed": "1"}, sets("dataset.limit=256", "iterations=3")},
		"pruned": {map[string]string{"hook.prune.from": "200", "hook.prune.until": "350", "train.epochs": "500"},
			sets("hook.prune.from=1", "hook.prune.until=2", "train.epochs=3")},
		"sparse codes": {map[string]string{"hook.sparse_phase.from": "40", "hook.sparse_phase.until": "80", "train.epochs": "120"},
			sets("hook.sparse_phase.from=1", "hook.sparse_phase.until=2", "train.epochs=3")},
	} {
		if got := shortened(c.settings); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestBefore(t *testing.T) {
	all := map[string]subject{}
	for _, name := range []string{"first", "second", "third", "other"} {
		all[name] = subject{name: name}
	}
	starts := map[string]string{"third": "second", "second": "first", "other": "elsewhere"}
	for name, want := range map[string][]string{"third": {"first", "second"}, "second": {"first"}, "first": nil, "other": nil} {
		var got []string
		for _, s := range before(all, starts, name) {
			got = append(got, s.name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestSelected(t *testing.T) {
	all := []subject{{kind: kindSweep, name: "table1"}, {kind: kindModel, name: "shallow"}, {kind: kindModel, name: "shallow-l1"}}
	for glob, want := range map[string]int{"": 3, "shallow": 1, "shallow*": 2, "sweep *": 1, "asym": 0} {
		if got := selected(all, glob); len(got) != want {
			t.Errorf("%q: got %v, want %d", glob, got, want)
		}
	}
}

func TestVariantsChangeAModel(t *testing.T) {
	names := map[string]bool{}
	for _, v := range variants {
		model := subject{kind: kindModel, name: v.model, model: v.model, args: []string{"--short"}, dataset: "own"}
		got := variantsOf(map[string]subject{v.model: model})
		i := slices.IndexFunc(got, func(s subject) bool { return s.name == v.name })
		if i < 0 || names[v.name] {
			t.Fatalf("%s: got %v; names are unique: %v", v.name, got, !names[v.name])
		}
		names[v.name] = true
		if s := got[i]; s.kind != kindVariant || s.model != v.model || s.args[0] != "--short" || len(s.args) < 2 || s.dataset == "" {
			t.Errorf("%s: got %+v", v.name, s)
		}
	}
	if got := variantsOf(nil); len(got) != 0 {
		t.Errorf("without models: got %v", got)
	}
}

func TestLastLines(t *testing.T) {
	const text = "epoch 1/2\nepoch 2/2\n--set x: wrong\n    x=1\n      ^\n"
	if got, want := lastLines(text), "epoch 2/2; --set x: wrong; x=1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := lastLines(""); got != "" {
		t.Errorf("of nothing: got %q", got)
	}
}

func TestEnvironmentIsTheSameForBoth(t *testing.T) {
	got := program{data: "/data"}.environment([]string{"PATH=/bin", "TESSERA_BLAS=x.so", "TESSERA_DATA=/other", "TESSERA_SIMD=none"})
	if want := []string{"PATH=/bin", "TESSERA_SIMD=none", "TESSERA_BLAS=none", "TESSERA_DATA=/data"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
