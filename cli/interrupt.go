package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// interruptible returns a context that the first Ctrl-C (or SIGTERM) cancels: training then writes a checkpoint. The second
// one ends the process immediately.
func interruptible(parent context.Context, stderr io.Writer) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		fmt.Fprintln(stderr, "\ntessera: interrupted: finishing the current batch; press Ctrl-C again to stop immediately")
		cancel()
		<-signals
		os.Exit(exitInterrupted)
	}()
	return ctx, func() {
		cancel()
		signal.Stop(signals)
	}
}
