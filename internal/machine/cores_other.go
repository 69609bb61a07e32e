//go:build !linux && !darwin

package machine

func cores() Cores { return Cores{} }

func systemCPU() string { return "" }
