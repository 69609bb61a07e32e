package cli

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"tessera/internal/expect"
	"tessera/internal/fatal"
)

func TestReportsAreFiles(t *testing.T) {
	b := newBench(t)
	b.trained("one", 1)
	b.trained("two", 2)
	b.must(0, "report", "one", "two", "-o", "pages.html", "--metrics", "mse")
	b.contains("the report", b.read("pages.html"), "<!doctype html>", "epochs = 2", "<td>auto-encoder</td>")
	b.must(0, "compare", "one", "two", "-o", "comparison.html", "--metrics", "mse")
	b.contains("the comparison", b.read("comparison.html"), "train.epochs", "Atoms in pairs")
	for _, args := range [][]string{{"report"}, {"report", "missing"}, {"report", "one", "-o", "two"}, {"report", "one", "--split", "none"}, {"report", "one", "--metrics", "mice"}} {
		b.must(exitUsage, args...)
	}
	b.must(exitWrite, "report", "one", "-o", "nowhere/page.html", "--metrics", "mse")
}

func TestTheServerNeedsATokenForOtherMachines(t *testing.T) {
	b := newBench(t)
	for _, args := range [][]string{{"--listen", "0.0.0.0:0"}, {"--listen", "0.0.0.0:0", "--token", "short"}, {"--listen", "port"}, {"missing"}} {
		b.must(exitUsage, append([]string{"ui"}, args...)...)
	}
	b.trained("runs/small", 1)
	cmd := b.command("ui", "--listen", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	fatal.If(t, err)
	fatal.If(t, cmd.Start())
	address, err := bufio.NewReader(out).ReadString('\n')
	fatal.If(t, err)
	answer, err := http.Get(strings.TrimSpace(address))
	fatal.If(t, err)
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	if err != nil || !strings.Contains(string(text), `"path":"runs/small"`) {
		t.Errorf("the list: %v\n%.300s", err, text)
	}
	fatal.If(t, cmd.Process.Signal(os.Interrupt))
	expect.NoError(t, cmd.Wait(), "after Ctrl-C")
}
