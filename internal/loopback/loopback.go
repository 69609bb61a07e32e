// Package loopback recognizes the names and addresses under which only this machine reaches itself.
package loopback

import (
	"net"
	"strings"
)

// Host reports whether a host, with or without a port, is localhost or a loopback address. A server on this machine that accepts
// only such Host headers cannot be used by a web page through a name that the page controls (DNS rebinding).
func Host(host string) bool {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}
