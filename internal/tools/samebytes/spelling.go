package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// hookKeys contains the spellings of hooks up to version 0.2.0-dev of November 2026, with the current spelling. They are tried
// in this order.
var hookKeys = []struct {
	old *regexp.Regexp
	now string
}{
	{regexp.MustCompile(`^prune\.0\.`), "hook.prune."},
	{regexp.MustCompile(`^(average|adversarial)\.`), "hook.$1."},
	{regexp.MustCompile(`^(average|adversarial)=`), "hook.$1="},
	{regexp.MustCompile(`^train\.(patience|min_delta)\b`), "hook.early_stopping.$1"},
}

// respelled returns settings in which hooks are tables hook.NAME. Disabled early stopping has no hook.
func respelled(settings map[string]string) map[string]string {
	settings = maps.Clone(settings)
	if settings["train.patience"] == "0" {
		delete(settings, "train.patience")
		delete(settings, "train.min_delta")
	}
	if settings["prune.length"] == "1" {
		delete(settings, "prune.length")
	}
	for key, value := range maps.Clone(settings) {
		for _, k := range hookKeys {
			if now := k.old.ReplaceAllString(key, k.now); now != key {
				delete(settings, key)
				settings[now] = value
				break
			}
		}
	}
	return settings
}

// spell returns the arguments of a subject in the spelling of the program: an old program needs hooks in the old spelling.
func (p program) spell(args []string) []string {
	if !p.old {
		return args
	}
	args = slices.Clone(args)
	for i, arg := range args {
		for now, old := range map[string]string{"hook.prune.": "prune.0.", "hook.average=": "average=", "hook.adversarial=": "adversarial=",
			"hook.early_stopping.": "train."} {
			if rest, ok := strings.CutPrefix(arg, now); ok {
				args[i] = old + rest
			}
		}
	}
	return args
}
