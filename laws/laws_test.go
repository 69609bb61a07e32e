package laws_test

import (
	"testing"

	"tessera/laws"
)

// mustBreak tests a kit with parts that break its laws: a law that no wrong part can break proves nothing.
func mustBreak[T any](t *testing.T, kit laws.Kit[T], wrong map[string]func() T) {
	t.Helper()
	for _, law := range kit.Names() {
		if fresh, ok := wrong[law]; !ok {
			t.Errorf("no part breaks %q", law)
		} else if kit.Test(fresh)[law] == nil {
			t.Errorf("the part that is to break %q obeys it", law)
		}
	}
}
