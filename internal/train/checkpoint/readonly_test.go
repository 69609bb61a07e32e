//go:build unix

package checkpoint

import (
	"reflect"
	"runtime/debug"
	"syscall"
	"testing"
)

// Programs may embed checkpoints, so several goroutines may decode the same bytes.
func TestDecodeOnlyReadsItsBytes(t *testing.T) {
	want := sample()
	text := encode(t, want)
	b, err := syscall.Mmap(-1, 0, len(text), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Skip(err)
	}
	defer syscall.Munmap(b)
	copy(b, text)
	if err := syscall.Mprotect(b, syscall.PROT_READ); err != nil {
		t.Skip(err)
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			t.Errorf("Decode writes into its argument: %v", cause)
		}
	}()
	if got, err := Decode(b); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, %v", got, err)
	}
}
