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

	"github.com/spf13/cobra"
	"tessera/apps/internal/ui"
	"tessera/apps/show/page"
	"tessera/internal/loopback"
)

// tokenVariable is the environment variable for the token of ui. Other users of the machine cannot read it, unlike a flag.
const tokenVariable = "TESSERA_TOKEN"

func uiCommand() *cobra.Command {
	var f uiFlags
	cmd := &cobra.Command{
		Use:   "ui [DIR]",
		Short: "Show a folder of runs and sweeps in the browser, with the progress of trainings",
		Long: "Serve the pages of `tessera report` for all runs and sweeps in a folder (default runs and sweeps of the current one) and its sub-folders: a list that sorts and filters, " +
			"reports, comparisons, and curves that follow trainings. It writes nothing. The server listens on this machine only; with a " +
			"--listen that other machines can reach, every request needs the token that $" + tokenVariable + " or --token gives.",
		Example:           "  tessera ui\n  tessera ui sweeps --listen 127.0.0.1:9000\n  TESSERA_TOKEN=$(openssl rand -hex 16) tessera ui --listen 0.0.0.0:8420",
		Args:              cobra.MaximumNArgs(1),
		RunE:              work(func(cmd *cobra.Command, args []string) error { return f.serve(cmd, args) }),
		ValidArgsFunction: completeFolders,
	}
	f.runFlags.add(cmd)
	cmd.Flags().StringVar(&f.address, "listen", "127.0.0.1:8420", "address and port to listen on; port 0 takes a free one")
	cmd.Flags().StringVar(&f.token, "token", "", "token that requests need (default $"+tokenVariable+")")
	return cmd
}

// uiFlags contains the flags of the command ui.
type uiFlags struct {
	runFlags
	address, token string
}

// leastToken is the minimum length of a token, in bytes.
const leastToken = 16

func (f *uiFlags) serve(cmd *cobra.Command, args []string) error {
	dir, within := ".", []string{"runs", "sweeps"}
	if len(args) > 0 {
		dir, within = args[0], nil
	}
	if err := findFolder(dir); err != nil {
		return err
	}
	if within != nil && findFolder("runs") != nil && findFolder("sweeps") != nil {
		return findFolder("runs")
	}
	options, err := f.options()
	if err != nil {
		return err
	}
	if f.token == "" {
		f.token = os.Getenv(tokenVariable)
	}
	local, err := isLocal(f.address)
	switch {
	case err != nil:
		return usagef("--listen: %v", err)
	case !local && f.token == "":
		return usagef("--listen: %s is reachable from other machines and needs a token; set $%s", f.address, tokenVariable)
	case f.token != "" && len(f.token) < leastToken:
		return usagef("--token: got %d characters, want at least %d", len(f.token), leastToken)
	}
	server, err := ui.New(dir, ui.Options{Options: page.Options{Open: options}, Token: f.token, AnyHost: !local, Folders: within})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.address)
	if err != nil {
		return usagef("--listen: %v", err)
	}
	show := url.URL{Scheme: "http", Host: reachable(listener.Addr()), Path: "/"}
	if f.token != "" {
		show.RawQuery = url.Values{"token": {f.token}}.Encode()
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

// isLocal reports whether an address is reachable only from this machine.
func isLocal(address string) (bool, error) {
	_, _, err := net.SplitHostPort(address)
	return err == nil && loopback.Host(address), err
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
