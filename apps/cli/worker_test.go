package cli

import (
	"net"
	"strings"
	"testing"

	"tessera/internal/fatal"
)

func TestWrongFlagsOfSweepsOnSeveralMachinesSayWhatToDo(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	b.write("token", "a secret of this test")
	for args, says := range map[string]string{
		"sweep targets --listen 127.0.0.1:0 --nats nats://h":       "--listen and --nats cannot be given together",
		"sweep targets --token-file token":                         "need --listen or --nats",
		"sweep targets --tls-ca token":                             "need --listen or --nats",
		"sweep targets --collect nowhere":                          "nowhere: no such folder; give the folder of a sweep",
		"sweep targets --listen 127.0.0.1:0 --tls-cert server.pem": "--tls-key is missing: --tls-cert and --tls-key are given together",
	} {
		r := b.must(exitUsage, strings.Fields(args)...)
		b.contains("tessera "+args, r.stderr, says)
		if strings.Contains(r.stderr, "group") || strings.Contains(r.stderr, "time: ") {
			t.Errorf("tessera %s: words of a library: %s", args, r.stderr)
		}
	}
}

func TestASweepThatCannotListenWritesNothing(t *testing.T) {
	t.Parallel()
	b := newSweepBench(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fatal.If(t, err)
	defer l.Close()
	r := b.must(exitUsage, "sweep", "targets", "--listen", l.Addr().String())
	b.contains("standard error", r.stderr, "in use")
	if b.exists("sweeps") {
		t.Error("the folder of the sweep was made")
	}
}
