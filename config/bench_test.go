package config

import "testing"

// BenchmarkCheck reads and checks the shipped models. Every command that names a model does this first.
func BenchmarkCheck(b *testing.B) {
	text := shipped(b)
	for b.Loop() {
		f, err := Load("models.toml", text)
		if err != nil {
			b.Fatal(err)
		}
		if err := f.Check(); err != nil {
			b.Fatal(err)
		}
	}
}
