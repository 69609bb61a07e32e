package cli

import (
	"cmp"
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

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"tessera/apps/serve"
)

func serveCommand() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve RUN...",
		Short: "Serve runs over HTTP by the Open Inference Protocol",
		Long: "Serve the models of runs over HTTP by the Open Inference Protocol, version 2. A model has the name of its run's folder; NAME=RUN gives " +
			"it another one. A run is read again when its files change. Ctrl-C or SIGTERM ends the server after it has answered the open requests.",
		Example: "  tessera serve runs/shallow\n" +
			"  tessera serve clothes=runs/shallow digits=runs/asym-mnist --listen :8080 \\\n" +
			"    --tokens tokens.txt --tls-cert cert.pem --tls-key key.pem\n" +
			"  curl --data-binary @shirt.png localhost:8080/v2/models/shallow/image?output=code",
		Args:              atLeast(1, "run"),
		RunE:              work(func(cmd *cobra.Command, args []string) error { return f.serve(cmd, args) }),
		ValidArgsFunction: completeFolders,
	}
	f.add(cmd)
	return cmd
}

// serveFlags contains the flags of the command serve.
type serveFlags struct {
	serve.Options
	listen, tokens, certificate, key string
	backend, requests                string
}

func (f *serveFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.listen, "listen", "127.0.0.1:8080", "address and port; port 0 takes a free one")
	flags.StringVar(&f.tokens, "tokens", "", "file with the bearer tokens that are accepted, one per line")
	flags.StringVar(&f.certificate, "tls-cert", "", "file with the TLS certificate (PEM)")
	flags.StringVar(&f.key, "tls-key", "", "file with the key of the certificate (PEM)")
	addBackendFlag(cmd, &f.backend)
	flags.IntVar(&f.Workers, "threads", runtime.GOMAXPROCS(0), "batches that are computed at the same time, for each output of a model")
	flags.IntVar(&f.MaxBatch, "max-batch", 64, "images that are computed together; 1 does not batch")
	flags.DurationVar(&f.MaxWait, "max-wait", 0, "how long an image waits for others while a thread is free")
	flags.IntVar(&f.Queue, "queue", 1024, "images that may wait for each output of a model; further requests are answered 429")
	flags.Int64Var(&f.MaxBody, "max-body", 32<<20, "bytes of the body of a request")
	flags.Int64Var(&f.MaxMemory, "max-memory", serve.DefaultMemory, "bytes that all requests hold at once: bodies, images, results, responses; further requests are answered 429")
	flags.IntVar(&f.MaxHeader, "max-header", 64<<10, "bytes of the header of a request")
	flags.IntVar(&f.MaxConns, "max-connections", 4096, "connections at once; others wait")
	flags.DurationVar(&f.ReadTimeout, "read-timeout", 30*time.Second, "time limit for reading a request")
	flags.DurationVar(&f.Timeout, "timeout", 30*time.Second, "time limit for computing a request")
	flags.DurationVar(&f.DrainDelay, "drain-delay", time.Second, "first phase of the drain: how long requests are accepted while the server is not ready")
	flags.DurationVar(&f.DrainTimeout, "drain-timeout", 30*time.Second, "second phase of the drain: time limit for open requests")
	flags.DurationVar(&f.Reload, "reload", 2*time.Second, "how often the files of runs, tokens and certificate are checked for changes; negative for never")
	addChoice(cmd, &f.requests, "log-requests", "", []string{"text", "json"}, "log every request to standard error")
	flags.BoolVar(&f.Generate, "generate", false, "also serve NAME.sample (seed to image) and NAME.traverse (unit and position in [0,1] to image) for each model NAME that can make them")
	flags.BoolVar(&f.Profile, "pprof", false, "serve profiles at /debug/pprof/")
}

func (f *serveFlags) serve(cmd *cobra.Command, args []string) error {
	defer runtime.KeepAlive(ballast())
	stderr := &locked{out: cmd.ErrOrStderr()}
	f.Log = func(text string) { fmt.Fprintln(stderr, "tessera:", text) }
	if err := f.numbers(cmd); err != nil {
		return err
	}
	switch f.requests {
	case "text":
		f.Requests = slog.New(slog.NewTextHandler(stderr, nil))
	case "json":
		f.Requests = slog.New(slog.NewJSONHandler(stderr, nil))
	}
	models, err := f.models(args)
	if err != nil {
		return err
	}
	if err := f.secure(); err != nil {
		return usageError{err}
	}
	common := runFlags{threads: 1, backend: f.backend}
	if f.Runs, err = common.options(); err != nil {
		return err
	}
	server, err := serve.New(models, f.Options)
	if errors.As(err, new(*serve.OptionError)) {
		return usageError{err}
	} else if err != nil {
		return err
	}
	l, err := net.Listen("tcp", f.listen)
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

// numbers returns an error for flags below their range and translates flags that are 0, because 0 selects the default in
// [serve.Options]. A drain flag of 0 means no waiting; for other flags 0 is an error.
func (f *serveFlags) numbers(cmd *cobra.Command) (err error) {
	for _, wait := range []*time.Duration{&f.DrainDelay, &f.DrainTimeout} {
		if *wait == 0 {
			*wait = time.Nanosecond
		}
	}
	cmd.Flags().Visit(func(flag *pflag.Flag) {
		value := flag.Value.String()
		switch name := flag.Name; {
		case flag.Value.Type() == "string" || flag.Value.Type() == "bool":
		case strings.HasPrefix(value, "-") && name != "reload":
			err = cmp.Or(err, usagef("--%s: got %s, want > 0", name, value))
		case (value == "0" || value == "0s") && name != "max-wait" && !strings.HasPrefix(name, "drain-"):
			err = cmp.Or(err, usagef("--%s: got 0, want another value; without the flag it is %s", name, flag.DefValue))
		}
	})
	return err
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
func (f *serveFlags) models(args []string) ([]serve.Model, error) {
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
func (f *serveFlags) secure() (err error) {
	if f.tokens != "" {
		if f.Tokens, err = serve.ReadTokens(f.tokens); err != nil {
			return fmt.Errorf("--tokens: %w", err)
		}
	}
	if (f.certificate == "") != (f.key == "") {
		return errors.New("--tls-cert and --tls-key: got one of them, want both")
	}
	if f.certificate == "" {
		return nil
	}
	if f.Certificate, err = serve.ReadCertificate(f.certificate, f.key); err != nil {
		return fmt.Errorf("--tls-cert: %w", err)
	}
	return nil
}

// announce prints the address of the server.
func (f *serveFlags) announce(out io.Writer, at net.Addr, server *serve.Server) {
	scheme := "http"
	if f.Certificate != nil {
		scheme = "https"
	}
	if a, ok := at.(*net.TCPAddr); ok && !a.IP.IsLoopback() && f.Tokens == nil {
		fmt.Fprintln(out, "tessera: warning: anyone who can reach this address can use the models; --tokens FILE requires a token")
	}
	for _, name := range server.Models() {
		fmt.Fprintf(out, "%s://%s/v2/models/%s\n", scheme, at, name)
	}
}

// locked is a writer for concurrent use.
type locked struct {
	mu  sync.Mutex
	out io.Writer
}

// Write implements io.Writer.
func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.out.Write(p)
}
