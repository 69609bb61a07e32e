package machine

import (
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestTheCPUHasANameOfOneLine(t *testing.T) {
	if name := CPU(); name == "" || strings.ContainsAny(name, "\n:") {
		t.Errorf("got %q", name)
	}
}

func TestFeaturesAreThoseOfThisArchitecture(t *testing.T) {
	found := Features()
	if slices.Contains(found, "avx2") && !slices.Contains(found, "avx") {
		t.Errorf("avx2 without avx: %v", found)
	}
	for feature, architecture := range map[string]string{"avx": "amd64", "asimd": "arm64"} {
		if slices.Contains(found, feature) && runtime.GOARCH != architecture {
			t.Errorf("%s on %s", feature, runtime.GOARCH)
		}
	}
}
