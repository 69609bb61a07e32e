package ui

import (
	"net/url"
	"testing"
)

func TestTheAddressWithoutATokenIsOfThisServer(t *testing.T) {
	for path, want := range map[string]string{"/": "/?run=a", "/run/x": "/run/x?run=a", "//example.org/x": "/example.org/x?run=a", `/\example.org`: "/%5Cexample.org?run=a"} {
		if got := withoutToken(&url.URL{Path: path, RawQuery: "token=secret&run=a"}); got != want {
			t.Errorf("%s: got %s, want %s", path, got, want)
		}
	}
}
