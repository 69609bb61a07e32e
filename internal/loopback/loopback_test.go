package loopback

import (
	"testing"

	"tessera/internal/expect"
)

func TestHostsOfThisMachine(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "localhost:80": true, "127.0.0.1:8080": true, "127.8.9.1": true, "[::1]:80": true, "[::1]": true, "::1": true,
		"": false, "evil.example": false, "localhost.evil.example:80": false, "127.0.0.1.evil.example": false, "0.0.0.0:80": false, "192.168.0.1": false, "[::]:80": false} {
		expect.Equal(t, Host(host), want, host, !want)
	}
}

func TestOtherHostsAreAllowedByName(t *testing.T) {
	for host, want := range map[string]bool{"localhost:80": true, "models.example.com": true, "MODELS.example.com:443": true, "example.com": false, "": false} {
		expect.Equal(t, Accepts(host, []string{"models.example.com"}), want, host)
	}
	if !Accepts("anything", []string{"*"}) {
		t.Error("* does not allow every name")
	}
}

func TestAnOpenAddressNeedsATokenOrAllowedNames(t *testing.T) {
	for _, c := range []struct {
		address string
		tokens  bool
		allowed []string
		ok      bool
	}{{"127.0.0.1:0", false, nil, true}, {":8080", false, nil, false}, {"0.0.0.0:80", false, nil, false}, {"[::]:80", false, nil, false},
		{":8080", true, nil, true}, {":8080", false, []string{"a"}, true}, {"port", true, nil, false}} {
		if err := Check(c.address, c.tokens, c.allowed); (err == nil) != c.ok {
			t.Errorf("%+v: got %v", c, err)
		}
	}
}
