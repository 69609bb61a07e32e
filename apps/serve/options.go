package serve

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"runtime"
	"time"

	"tessera"
)

// Options say how a server works. A field that is 0 takes its default.
type Options struct {
	MaxBatch int           // images that are computed together; 1 does not batch; default 64
	MaxWait  time.Duration // how long an image waits for others while a worker is free; default 0, does not wait
	Queue    int           // images that may wait for each output of a model; a request beyond is answered 429; default 1024
	Workers  int           // goroutines that compute each output; default one per CPU

	MaxImages int   // images of one request; default, and at most, Queue
	MaxBody   int64 // bytes of the body of a request; default 32 MiB
	MaxMemory int64 // bytes of all bodies that are held at once; a request beyond is answered 429; default 512 MiB
	MaxHeader int   // bytes of the header of a request; default 64 KiB
	MaxConns  int   // connections at once, others wait; default 4096

	ReadTimeout  time.Duration // from the first byte of a request to its last one; default 30 s
	Timeout      time.Duration // from the end of a request to its results, then for writing them; default 30 s
	IdleTimeout  time.Duration // between two requests of a connection; default 2 min
	DrainDelay   time.Duration // when the server ends: how long it accepts requests, is not ready and asks clients to close; default 1 s
	DrainTimeout time.Duration // afterwards: how long it waits for open requests; default 30 s
	Reload       time.Duration // how often the files of runs, tokens and certificates are checked for changes; negative for never; default 2 s

	Certificate *Certificate      // serves TLS with this certificate
	TLS         *tls.Config       // the other settings of TLS, or all of them; nil without Certificate serves without TLS
	Tokens      *Tokens           // nil serves everyone
	Profile     bool              // serve /debug/pprof
	Runs        tessera.Options   // how runs are opened
	Log         func(text string) // called for reloads and faults, by several goroutines; nil is silent
}

// complete checks the options and fills in the defaults.
func (o *Options) complete() error {
	o.Workers = cmp.Or(o.Workers, runtime.GOMAXPROCS(0))
	o.MaxImages = cmp.Or(o.MaxImages, o.Queue, 1024)
	o.Reload = cmp.Or(o.Reload, 2*time.Second)
	if o.Log == nil {
		o.Log = func(string) {}
	}
	if o.MaxWait < 0 {
		return fmt.Errorf("serve: MaxWait: got %v, want >= 0", o.MaxWait)
	}
	err := errors.Join(set(&o.MaxBatch, "MaxBatch", 64), set(&o.Queue, "Queue", 1024), set(&o.MaxImages, "MaxImages", 1024),
		set(&o.Workers, "Workers", 1), set(&o.MaxBody, "MaxBody", 32<<20), set(&o.MaxMemory, "MaxMemory", 512<<20),
		set(&o.MaxHeader, "MaxHeader", 64<<10), set(&o.MaxConns, "MaxConns", 4096), set(&o.ReadTimeout, "ReadTimeout", 30*time.Second),
		set(&o.Timeout, "Timeout", 30*time.Second), set(&o.IdleTimeout, "IdleTimeout", 2*time.Minute),
		set(&o.DrainDelay, "DrainDelay", time.Second), set(&o.DrainTimeout, "DrainTimeout", 30*time.Second))
	if err == nil && o.MaxImages > o.Queue {
		return fmt.Errorf("serve: MaxImages: got %d, want at most Queue = %d", o.MaxImages, o.Queue)
	}
	return err
}

// set gives a field its default and returns an error for a negative value.
func set[T int | int64 | time.Duration](field *T, name string, standard T) error {
	*field = cmp.Or(*field, standard)
	if *field < 0 {
		return fmt.Errorf("serve: %s: got %v, want > 0", name, *field)
	}
	return nil
}
