package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// interruptible returns a context that the first Ctrl-C (or SIGTERM) cancels: training then writes a checkpoint, serve answers
// the open requests. The second one ends the process immediately.
func interruptible(parent context.Context, args []string, stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		finishing := "finishing the current batch"
		if len(args) > 0 && args[0] == "serve" {
			finishing = "answering the open requests"
		}
		fmt.Fprintln(stderr, "\ntessera: interrupted: "+finishing+"; press Ctrl-C again to stop immediately")
		cancel()
		<-signals
		os.Exit(exitInterrupted)
	}()
	return ctx, func() {
		cancel()
		signal.Stop(signals)
	}
}
