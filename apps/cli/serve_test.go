package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

// serving starts tessera serve. It returns the address of the model, the process, and a reader of the remaining standard
// error.
func (b *bench) serving(args ...string) (url string, cmd *exec.Cmd, rest *bufio.Reader) {
	b.Helper()
	cmd = b.command(append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	stderr, err := cmd.StderrPipe()
	fatal.If(b, err)
	fatal.If(b, cmd.Start())
	rest = bufio.NewReader(stderr)
	line, err := rest.ReadString('\n')
	for err == nil && strings.Contains(line, " is not served: ") { // with --generate
		line, err = rest.ReadString('\n')
	}
	if err != nil || !strings.HasPrefix(line, "http://127.0.0.1:") {
		b.Fatalf("got %q, %v", line, err)
	}
	return strings.TrimSpace(line), cmd, rest
}

func TestServeAnswersOpenRequestsWhenItIsTerminated(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGTERM")
	}
	b := benchOf(t)
	b.write("models.toml", "[model.bars]\ndataset = \"bars\"\nencoder = [{ kind = \"dense\", units = 6 }]\ntrain = { epochs = 1 }\n")
	b.must(0, "train", "bars", "--quiet")
	url, cmd, rest := b.serving("strips=runs/bars", "--drain-delay", "200ms")
	if !strings.HasSuffix(url, "/v2/models/strips") {
		t.Errorf("got %q", url)
	}
	body := fmt.Sprintf(`{"inputs":[{"name":"input","shape":[1,64],"datatype":"FP32","data":[%s0]}]}`, strings.Repeat("0.25,", 63))
	var complete atomic.Int64
	var wait sync.WaitGroup
	enough := make(chan struct{})
	for range 4 {
		wait.Go(func() {
			for {
				r, err := http.Post(url+"/infer", "application/json", strings.NewReader(body))
				if err != nil {
					return // the server has ended
				}
				_, err = io.Copy(io.Discard, r.Body)
				r.Body.Close()
				if err != nil || r.StatusCode != http.StatusOK {
					t.Errorf("status %d, %v", r.StatusCode, err)
					return
				}
				if complete.Add(1) == 100 {
					close(enough)
				}
			}
		})
	}
	<-enough
	fatal.If(t, cmd.Process.Signal(syscall.SIGTERM))
	wait.Wait()
	said, err := io.ReadAll(rest)
	expect.NoError(t, cmd.Wait(), "exit code")
	if want := fmt.Sprintf("tessera: ended: %d inference requests were answered", complete.Load()); err != nil || !bytes.Contains(said, []byte(want)) {
		t.Errorf("got %s, %v; want %s", said, err, want)
	}
	b.contains("the last lines", string(said), "answering the open requests")
}

func TestServeRefusesWhatItCannotServe(t *testing.T) {
	b := newBench(t)
	b.must(exitUsage, "serve")
	b.must(exitUsage, "serve", "runs/none")
	b.write("runs/empty/x", "")
	b.must(exitUsage, "serve", "runs/empty")
	b.write("tokens", "short")
	b.contains("tokens", b.must(exitUsage, "serve", "runs/empty", "--tokens", "tokens").stderr, "--tokens: tokens: token 1: got 5 characters, want at least 16")
	b.contains("tls", b.must(exitUsage, "serve", "runs/empty", "--tls-key", "x").stderr, "--tls-cert is missing")
	b.contains("tls", b.must(exitUsage, "serve", "runs/empty", "--tls-key", "x", "--tls-cert", "x").stderr, "--tls-cert")
}

func TestUsageErrorsOfServe(t *testing.T) {
	b := newBench(t)
	b.trained("R", 1)
	for _, args := range [][]string{{"R", "--max-body", "-1"}, {"R", "--timeout", "-1s"}, {"R", "--max-header", "-5"}, {"a/b=R"}, {"%2e=R"}, {"R", "R"}, {"X=R", "X=R"},
		{"..=R"}, {".=R"}, {"R", "--log-requests", "xml"}, {"R", "--max-memory", "0"}, {"R", "--path", "tessera"}, {"R", "--listen", ":0"}, {"R", "--listen", "port"}} {
		b.must(exitUsage, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	}
	b.contains("an open address", b.must(exitUsage, "serve", "R", "--listen", "0.0.0.0:0").stderr, "reachable from other machines and needs a token", "--allow-host")
}

// Behind a proxy that authenticates its clients: another name of the host, a prefix of the paths, and a log of JSON alone.
func TestServeBehindAProxy(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGTERM")
	}
	b := benchOf(t)
	b.trained("R", 1)
	cmd := b.command("serve", "R", "--listen", "0.0.0.0:0", "--path", "/tessera/", "--allow-host", "models.example.com", "--log-requests", "json", "--drain-delay", "1ms")
	stderr, err := cmd.StderrPipe()
	fatal.If(t, err)
	fatal.If(t, cmd.Start())
	lines := bufio.NewScanner(stderr)
	var first struct{ Msg string }
	if !lines.Scan() || json.Unmarshal(lines.Bytes(), &first) != nil || !strings.HasSuffix(first.Msg, "/tessera/v2/models/R") {
		t.Fatalf("got %q, want the address as JSON", lines.Text())
	}
	address := strings.Replace(first.Msg, "[::]", "127.0.0.1", 1)
	for _, c := range []struct {
		address, host string
		want          int
	}{
		{address, "models.example.com", http.StatusOK}, {address, "evil.example", http.StatusForbidden},
		{strings.Replace(address, "/tessera/", "/", 1), "models.example.com", http.StatusNotFound},
		{strings.TrimSuffix(address, "models/R") + "health/ready", "10.0.0.7", http.StatusOK},
	} {
		r, err := http.NewRequest(http.MethodGet, c.address, nil)
		fatal.If(t, err)
		r.Host = c.host
		got, err := http.DefaultTransport.RoundTrip(r)
		fatal.If(t, err)
		got.Body.Close()
		expect.Equal(t, got.StatusCode, c.want, c.address, "of", c.host, "status")
	}
	fatal.If(t, cmd.Process.Signal(syscall.SIGTERM))
	for lines.Scan() {
		if !json.Valid(lines.Bytes()) {
			t.Errorf("a line that is no JSON: %s", lines.Text())
		}
	}
	expect.NoError(t, cmd.Wait())
}
