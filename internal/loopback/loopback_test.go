package loopback

import "testing"

func TestHostsOfThisMachine(t *testing.T) {
	for host, want := range map[string]bool{"localhost": true, "localhost:80": true, "127.0.0.1:8080": true, "127.8.9.1": true, "[::1]:80": true, "[::1]": true, "::1": true,
		"": false, "evil.example": false, "localhost.evil.example:80": false, "127.0.0.1.evil.example": false, "0.0.0.0:80": false, "192.168.0.1": false, "[::]:80": false} {
		if Host(host) != want {
			t.Errorf("%q: got %v, want %v", host, !want, want)
		}
	}
}
