package laws_test

import (
	"testing"

	_ "tessera/internal/testheap"
	"tessera/laws"
)

// mustBreak tests a kit with incorrect parts. Every law must be broken by one of them; otherwise the law proves nothing.
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
