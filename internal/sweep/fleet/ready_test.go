package fleet

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"tessera/internal/expect"
	"tessera/internal/fatal"
	"tessera/internal/sweep"
)

// refusedSweep runs a sweep whose queue cannot be opened and returns the error. It fails the test if anything was
// written.
func refusedSweep(t *testing.T, o Options) error {
	t.Helper()
	out := filepath.Join(t.TempDir(), "s")
	s, err := sweep.New(context.Background(), spec(t, declared), sweep.Options{Out: out, Executor: NewCoordinator(o)})
	fatal.If(t, err)
	_, err = s.Run(context.Background())
	if _, there := os.Stat(out); there == nil {
		t.Errorf("%v: the folder of the sweep was made", err)
	}
	return err
}

func TestASweepWithoutItsQueueWritesNothing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	fatal.If(t, err)
	taken := l.Addr().String()
	expect.Is(t, refusedSweep(t, Options{Listen: taken}), ErrAddress, "an address in use")
	_ = l.Close()
	if err := refusedSweep(t, Options{URL: "nats://127.0.0.1:1"}); !errors.Is(err, ErrNoServer) || strings.Contains(err.Error(), "nats: ") {
		t.Errorf("no server: got %v, want %v in plain words", err, ErrNoServer)
	}
	plain, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoSigs: true, NoLog: true})
	fatal.If(t, err)
	go plain.Start()
	defer plain.Shutdown()
	if !plain.ReadyForConnections(time.Minute) {
		t.Fatal("the server did not start")
	}
	if err := refusedSweep(t, Options{URL: "nats://" + plain.Addr().String()}); !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "JetStream") {
		t.Errorf("no JetStream: got %v, want %v", err, ErrRefused)
	}
}

func TestAWorkerWithoutAServerSaysSo(t *testing.T) {
	t.Parallel()
	b := &bench{TB: t}
	err := <-b.worker(context.Background(), WorkerOptions{URL: "nats://127.0.0.1:1", Wait: time.Millisecond})
	if !errors.Is(err, ErrNoServer) || strings.Contains(err.Error(), "nats: ") || !b.said("no server answers at nats://127.0.0.1:1, waiting up to 1ms") {
		t.Errorf("got %v after %q", err, b.lines)
	}
}

func TestACertificateOfAnotherNameIsExplained(t *testing.T) {
	cert, key := certificate(t)
	b, stop := served(t, Options{Access: Access{Certificate: cert, Key: key}})
	defer stop()
	_, port, err := net.SplitHostPort(b.coordinator.server.Addr().String())
	fatal.If(t, err)
	b.refusedWith(WorkerOptions{URL: "nats://localhost:" + port, Access: Access{Authority: cert}},
		"its certificate is not for localhost (but for 127.0.0.1)")
}
