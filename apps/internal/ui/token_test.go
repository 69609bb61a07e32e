package ui

import (
	"net/url"
	"testing"

	"tessera/internal/expect"
)

func TestTheAddressWithoutATokenIsOfThisServer(t *testing.T) {
	for path, want := range map[string]string{"/": "/?run=a", "/run/x": "/run/x?run=a", "//example.org/x": "/example.org/x?run=a", `/\example.org`: "/%5Cexample.org?run=a"} {
		expect.Equal(t, withoutToken(&url.URL{Path: path, RawQuery: "token=secret&run=a"}), want, path)
	}
}
