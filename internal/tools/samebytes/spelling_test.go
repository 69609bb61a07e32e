package main

import (
	"maps"
	"slices"
	"testing"
)

func TestHooksAreComparedInOneSpelling(t *testing.T) {
	old := map[string]string{"prune.length": "1", "prune.0.fraction": "0.3", "adversarial.method": "pgd", "train.patience": "3", "train.min_delta": "0.5", "train.epochs": "9"}
	now := map[string]string{"hook.prune.fraction": "0.3", "hook.adversarial.method": "pgd", "hook.early_stopping.patience": "3", "hook.early_stopping.min_delta": "0.5", "train.epochs": "9"}
	if got := respelled(old); !maps.Equal(got, now) {
		t.Errorf("respelled: %v, want %v", got, now)
	}
	if got := respelled(now); !maps.Equal(got, now) {
		t.Errorf("today's spelling changed: %v", got)
	}
	if got := respelled(map[string]string{"train.patience": "0", "train.min_delta": "0.0"}); len(got) != 0 {
		t.Errorf("early stopping that is off: %v", got)
	}
}

func TestAnOldProgramGetsOldSpellings(t *testing.T) {
	args := sets("hook.prune.from=1", "hook.average={ decay = 0.9 }", "hook.early_stopping.patience=1", "train.epochs=2")
	if got, want := (program{old: true}).spell(args), sets("prune.0.from=1", "average={ decay = 0.9 }", "train.patience=1", "train.epochs=2"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := (program{}).spell(args); !slices.Equal(got, args) {
		t.Errorf("got %q, want %q", got, args)
	}
}
