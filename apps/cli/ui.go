package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"

	"tessera/apps/internal/ui"
	"tessera/apps/show/page"
	"tessera/internal/loopback"
)

// tokenVariable is the environment variable for the token of ui. Other users of the machine cannot read it, unlike a flag.
const tokenVariable = "TESSERA_TOKEN"

func init() {
	Commands.Register("ui", "Show a folder of runs and sweeps in the browser, with the progress of trainings", func() Command {
		return &uiCommand{runFlags: forRuns(), Address: "127.0.0.1:8420"}
	})
}

type uiCommand struct {
	Dir string `arg:"DIR" optional:"true" is:"folder" doc:"the folder"`
	runFlags
	Address string `flag:"listen" is:"address" doc:"address and port to listen on; port 0 takes a free one"`
	Token   string `flag:"token" doc:"token that requests need" default:"$TESSERA_TOKEN"`
}

func (f *uiCommand) Help() Help {
	return Help{
		Long: "Serve the pages of `tessera report` for all runs and sweeps in a folder (default runs and sweeps of the current one) and its sub-folders: a list that sorts and filters, " +
			"reports, comparisons, and curves that follow trainings. It writes nothing. The server listens on this machine only; with a " +
			"--listen that other machines can reach, every request needs the token that $" + tokenVariable + " or --token gives.",
		Examples: []string{"tessera ui", "tessera ui sweeps --listen 127.0.0.1:9000", "TESSERA_TOKEN=$(openssl rand -hex 16) tessera ui --listen 0.0.0.0:8420"},
	}
}

// leastToken is the minimum length of a token, in bytes.
const leastToken = 16

func (f *uiCommand) Do(cmd *Call) error {
	dir, within := ".", []string{"runs", "sweeps"}
	if f.Dir != "" {
		dir, within = f.Dir, nil
	}
	if within != nil && findFolder("runs") != nil && findFolder("sweeps") != nil {
		return findFolder("runs")
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	if f.Token == "" {
		f.Token = os.Getenv(tokenVariable)
	}
	if err := loopback.Check(f.Address, f.Token != "", nil); err != nil {
		return usagef("--listen: %v; set $%s", err, tokenVariable)
	}
	if f.Token != "" && len(f.Token) < leastToken {
		return usagef("--token: got %d characters, want at least %d", len(f.Token), leastToken)
	}
	server, err := ui.New(dir, ui.Options{Options: page.Options{Open: options}, Token: f.Token, AnyHost: !loopback.Host(f.Address), Folders: within})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.Address)
	if err != nil {
		return usagef("--listen: %v", err)
	}
	show := url.URL{Scheme: "http", Host: reachable(listener.Addr()), Path: "/"}
	if f.Token != "" {
		show.RawQuery = url.Values{"token": {f.Token}}.Encode()
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s\n", show.String())
	fmt.Fprintln(cmd.ErrOrStderr(), "tessera: press Ctrl-C to stop")
	return listen(cmd.Context(), listener, server.Handler())
}

// reachable returns an address for a browser: the name of the machine if the server listens on all its addresses.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	name, err := os.Hostname()
	if !ok || !tcp.IP.IsUnspecified() || err != nil {
		return a.String()
	}
	return net.JoinHostPort(name, strconv.Itoa(tcp.Port))
}

// listen serves until the context ends. Streams of events end with it.
func listen(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, MaxHeaderBytes: 1 << 16,
		BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := context.AfterFunc(ctx, func() { _ = server.Close() }) // pages that are being measured are not waited for
	defer ended()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("ui: %w", err)
	}
	return nil
}
