package config

import (
	"testing"

	"tessera/internal/fatal"
)

// BenchmarkCheck reads and checks the shipped models. Every command that names a model does this first.
func BenchmarkCheck(b *testing.B) {
	text := shipped(b)
	for b.Loop() {
		f, err := Load("models.toml", text)
		fatal.If(b, err)
		fatal.If(b, f.Check())
	}
}
