package browser

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tessera/internal/train"
)

// serve builds the command, starts `tessera ui` for a folder and returns its address.
func serve(t *testing.T, dir string) string {
	t.Helper()
	command := filepath.Join(t.TempDir(), "tessera")
	build := exec.Command("go", "build", "-o", command, "./apps/tessera")
	build.Dir = filepath.Join("..", "..", "..")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	ui := exec.Command(command, "ui", dir, "--listen", "127.0.0.1:0", "--threads", "1")
	out, err := ui.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := ui.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = ui.Process.Kill()
		_ = ui.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(strings.TrimSpace(line), "/")
}

func TestATrainingIsWatchedInTheBrowser(t *testing.T) {
	b := open(t)
	dir := t.TempDir()
	seen, trained := make(chan struct{}), make(chan struct{})
	third := make(chan struct{})
	go func() {
		defer close(trained)
		trainSwimmer(t, filepath.Join(dir, "watched run"), 8, func(p train.Progress) {
			if p.EpochDone && p.Epoch == 3 {
				close(third)
				<-seen // the training waits until the browser has shown these epochs
			}
		})
	}()
	<-third
	server := serve(t, dir)
	p := b.Page(t, server, server, View{Width: 1000, Height: 800})
	p.Wait(`document.querySelector('[data-path="watched run"]').textContent.includes("training")`)
	p.Click(`[data-path="watched run"] a`)
	p.Wait(`document.getElementById("live")?.textContent.startsWith("training: epoch 3 of 8")`)
	p.Wait(`document.querySelectorAll(".plot canvas").length > 0`)
	p.Shot("training", false)
	close(seen)
	p.Wait(`document.querySelector("input.slider") !== null`) // the report of the finished run has replaced the page
	p.Wait(`document.getElementById("live")?.textContent.startsWith("finished: epoch 8 of 8")`)
	<-trained
}

func TestTheListSearchesAndCompares(t *testing.T) {
	b := open(t)
	dir := t.TempDir()
	for name, epochs := range map[string]int{"one": 2, "two": 3, "three": 4} {
		trainSwimmer(t, filepath.Join(dir, name), epochs, nil)
	}
	server := serve(t, dir)
	p := b.Page(t, server, server, View{Width: 1000, Height: 800})
	p.Wait(`document.querySelectorAll("#list tbody tr").length === 3`)
	changed := `[...document.querySelectorAll("#list tbody tr")].map(r => r.lastChild.textContent)`
	if p.Number(changed+`.filter(t => /^\d{4}-\d\d-\d\d \d\d:\d\d$/.test(t)).length`) != 3 {
		t.Errorf("the times of the list are %s", p.Text(changed+`.join(", ")`))
	}
	p.Click(`#list thead th:nth-child(2) button`)
	if order := p.Text(`[...document.querySelectorAll("#list tbody th")].map(e => e.textContent).join(" ")`); order != "one three two" {
		t.Errorf("sorted by name: %s", order)
	}
	p.Click(`[data-path="one"] input`)
	p.Click(`[data-path="two"] input`)
	p.Shot("list", false)
	p.Click(`#list-compare`)
	p.Wait(`document.querySelectorAll(".pairs figure").length === 20`)
	p.Shot("comparison", true)
	if settings := p.Text(`[...document.querySelectorAll("table")].find(t => t.textContent.startsWith("setting")).textContent`); !strings.Contains(settings, "train.epochs") {
		t.Errorf("the settings that differ: %s", settings)
	}
	if err := os.RemoveAll(filepath.Join(dir, "three")); err != nil {
		t.Fatal(err)
	}
	p.Click(`.top a`)
	p.Wait(`document.querySelectorAll("#list tbody tr").length === 2`)
}
