// Package loopback recognizes the names and addresses under which only this machine reaches itself, and decides which requests a
// server accepts without a token.
package loopback

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// Host reports whether a host, with or without a port, is localhost or a loopback address. A server on this machine that accepts
// only such Host headers cannot be used by a web page through a name that the page controls (DNS rebinding).
func Host(host string) bool {
	name := withoutPort(host)
	ip := net.ParseIP(strings.Trim(name, "[]"))
	return name == "localhost" || ip != nil && ip.IsLoopback()
}

// Accepts reports whether a server without tokens accepts requests with a Host header: those of [Host], and of the allowed names,
// among which "*" means every name.
func Accepts(host string, allowed []string) bool {
	return Host(host) || slices.ContainsFunc(allowed, func(name string) bool { return name == "*" || strings.EqualFold(name, withoutPort(host)) })
}

// Check returns an error for an address on which a server must not listen: an invalid one, or, for a server without tokens and
// without allowed names, one that other machines reach.
func Check(address string, tokens bool, allowed []string) error {
	if _, _, err := net.SplitHostPort(address); err != nil {
		return err
	}
	if !tokens && len(allowed) == 0 && !Host(address) {
		return fmt.Errorf("%s is reachable from other machines and needs a token", address)
	}
	return nil
}

func withoutPort(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return host
}
