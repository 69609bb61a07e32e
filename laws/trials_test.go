package laws_test

import (
	"runtime/metrics"
	"testing"

	"tessera/laws"
	"tessera/losses"
)

// gcPercent reads the setting of the process without changing it.
func gcPercent() uint64 {
	sample := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// Tests that judge parts in parallel would leave each other's setting behind.
func TestAKitLeavesTheGarbageCollectorAlone(t *testing.T) {
	before, judged := gcPercent(), 0
	laws.Loss.Judge(func() losses.Loss {
		if judged++; gcPercent() != before {
			t.Errorf("GOGC is %d while parts are judged, want %d", gcPercent(), before)
		}
		return &losses.MSE{}
	})
	if judged == 0 {
		t.Error("nothing was judged")
	}
}
