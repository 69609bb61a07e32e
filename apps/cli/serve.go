package cli

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"tessera/apps/serve"
	"tessera/internal/loopback"
)

func init() {
	Commands.Register("serve", "Serve runs over HTTP by the Open Inference Protocol", func() Command {
		return &serveCommand{Listen: "127.0.0.1:8080", Backend: allThreads().Backend, Options: serve.Defaults()}
	})
}

type serveCommand struct {
	Runs        []string    `arg:"RUN" is:"place" doc:"folders of runs, or NAME=RUN"`
	Listen      string      `flag:"listen" is:"address" doc:"address and port; port 0 takes a free one"`
	TokenFile   string      `flag:"tokens" is:"file" doc:"file with the bearer tokens that are accepted, one per line"`
	Certificate string      `flag:"tls-cert" is:"file" together:"tls" doc:"file with the TLS certificate (PEM)"`
	Key         string      `flag:"tls-key" is:"file" together:"tls" doc:"file with the key of the certificate (PEM)"`
	Backend     backendName `flag:"backend" doc:"back end that runs the model"`
	Requests    string      `flag:"log-requests" oneof:"text json" doc:"log every request to standard error"`
	serve.Options
}

func (f *serveCommand) Help() Help {
	return Help{
		Long: "Serve the models of runs over HTTP by the Open Inference Protocol, version 2. A model has the name of its run's folder; NAME=RUN gives " +
			"it another one. A run is read again when its files change. Ctrl-C or SIGTERM ends the server after it has answered the open requests.",
		Examples: []string{"tessera serve runs/shallow",
			"tessera serve clothes=runs/shallow digits=runs/asym-mnist --listen :8080 \\\n    --tokens tokens.txt --tls-cert cert.pem --tls-key key.pem",
			"curl --data-binary @shirt.png localhost:8080/v2/models/shallow/image?output=code"},
	}
}

func (f *serveCommand) Do(cmd *Call) error {
	defer runtime.KeepAlive(ballast())
	stderr := &locked{out: cmd.ErrOrStderr()}
	f.Log = func(text string) { fmt.Fprintln(stderr, "tessera:", text) }
	for _, wait := range []*time.Duration{&f.DrainDelay, &f.DrainTimeout} { // 0 means no waiting, and would be the default
		*wait = max(*wait, time.Nanosecond)
	}
	if f.Reload == 0 {
		f.Reload = -1
	}
	switch f.Requests {
	case "text":
		f.Options.Requests = slog.New(slog.NewTextHandler(stderr, nil))
	case "json": // all lines, so that one program reads them
		f.Options.Requests = slog.New(slog.NewJSONHandler(stderr, nil))
		f.Log = func(text string) { f.Options.Requests.Info(text) }
		defer aboveTable(cmd.Context(), f.Log)()
	}
	models, err := f.models(f.Runs)
	if err != nil {
		return err
	}
	if err := f.secure(); err != nil {
		return usageError{err}
	}
	if err := loopback.Check(f.Listen, f.Tokens != nil, f.Hosts); err != nil {
		return usagef("--listen: %v; give --tokens FILE, or --allow-host NAME if a proxy authenticates its clients", err)
	}
	one := threadFlags{1, f.Backend}
	if f.Options.Runs, err = one.options(""); err != nil {
		return err
	}
	server, err := serve.New(models, f.Options)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", f.Listen)
	if err != nil {
		return errors.Join(usagef("--listen: %v", err), server.Close())
	}
	limitMemory(f.MaxMemory)
	f.announce(stderr, l.Addr(), server)
	err = server.Serve(cmd.Context(), l)
	if errors.Is(err, serve.ErrCut) { // as --drain-timeout asks
		f.Log(err.Error())
		err = nil
	}
	return errors.Join(err, server.Close())
}

// ballast returns memory that is never used. It occupies no physical memory, but the garbage collector counts it when it
// decides how much garbage may accumulate. The live heap of a server is only a few megabytes, so that without ballast the
// collector would run after every few megabytes of requests, and delay them. The environment variables of the collector take
// precedence.
func ballast() []byte {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return nil
	}
	return make([]byte, 16<<20)
}

// limitMemory sets the memory limit of the garbage collector to the memory of all requests and of the models, counted twice because of
// reloads. The collector runs more often near this limit; without it, garbage would take as much memory again.
func limitMemory(requests int64) {
	if os.Getenv("GOGC") == "" && os.Getenv("GOMEMLIMIT") == "" {
		runtime.GC()
		var now runtime.MemStats
		runtime.ReadMemStats(&now)
		debug.SetMemoryLimit(int64(now.Sys-now.HeapSys+2*now.HeapAlloc) + requests + requests/8)
	}
}

// models returns the models of the arguments. An argument is RUN or NAME=RUN.
func (f *serveCommand) models(args []string) ([]serve.Model, error) {
	var models []serve.Model
	for _, arg := range args {
		m := serve.Model{Folder: arg}
		if name, run, named := strings.Cut(arg, "="); named && findFolder(arg) != nil {
			m = serve.Model{Name: name, Folder: run}
		}
		if err := findFolder(m.Folder); err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	return models, nil
}

// secure reads tokens and certificate.
func (f *serveCommand) secure() (err error) {
	if f.TokenFile != "" {
		if f.Tokens, err = serve.ReadTokens(f.TokenFile); err != nil {
			return fmt.Errorf("--tokens: %w", err)
		}
	}
	if f.Certificate == "" {
		return nil
	}
	if f.Options.Certificate, err = serve.ReadCertificate(f.Certificate, f.Key); err != nil {
		return fmt.Errorf("--tls-cert: %w", err)
	}
	return nil
}

// announce prints the address of the server.
func (f *serveCommand) announce(out io.Writer, at net.Addr, server *serve.Server) {
	scheme := "http"
	if f.Options.Certificate != nil {
		scheme = "https"
	}
	for _, name := range server.Models() {
		if address := fmt.Sprintf("%s://%s%s/v2/models/%s", scheme, at, strings.TrimRight(f.Path, "/"), name); f.Requests == "json" {
			f.Log(address)
		} else {
			fmt.Fprintln(out, address)
		}
	}
}

// locked is a writer for concurrent use.
type locked struct {
	mu  sync.Mutex
	out io.Writer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}
