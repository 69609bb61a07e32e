// Package browser tests the pages of reports and of `tessera ui` in Chromium. A test clicks on a page and reads it. It fails
// for every error in the console and for every request to an address other than that of the page. It is skipped if Chromium is
// not installed.
package browser

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// patience limits the time of all actions of one test on a page. It allows for a loaded machine.
const patience = 2 * time.Minute

// Browser is a Chromium for the pages of one test.
type Browser struct{ ctx context.Context }

// open starts Chromium. It skips the test if Chromium is not installed.
func open(t testing.TB) *Browser {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil && path == "" {
			path = found
		}
	}
	if path == "" {
		t.Skip("left out: Chromium is not installed")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-gpu", true), chromedp.WSURLReadTimeout(patience))
	if os.Geteuid() == 0 { // Chromium's sandbox refuses root
		options = append(options, chromedp.NoSandbox)
	}
	allocated, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, quit := chromedp.NewContext(allocated)
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil { // waits, so that the folder of the browser can be removed
			t.Log(err)
		}
		quit()
		stop()
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("chromium does not start: %v", err)
	}
	return &Browser{ctx}
}

// View contains the settings with which a page is shown.
type View struct {
	Width, Height int64
	Dark          bool
}

// Page is a page in a tab.
type Page struct {
	testing.TB
	ctx     context.Context
	allowed string // prefix of the addresses of all allowed requests

	mu       sync.Mutex
	problems []string
}

// Page opens an address. Requests are allowed to addresses that begin with allowed. At its end the test fails if there were
// errors in the console or other requests.
func (b *Browser) Page(t testing.TB, address, allowed string, v View) *Page {
	t.Helper()
	tab, leave := chromedp.NewContext(b.ctx)
	p := &Page{TB: t, allowed: allowed}
	if err := chromedp.Listen(tab, p.record); err != nil { // opens the tab, which lives as long as its context
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(tab, patience)
	p.ctx = ctx
	t.Cleanup(func() {
		cancel()
		leave()
		p.Check()
	})
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	_, network := chromedp.Call(ctx, network.Enable, network.EnableParams{})
	_, console := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	_, errs := chromedp.Call(ctx, runtime.Enable, cdp.Empty{})
	_, media := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	if err := errors.Join(network, console, errs, media); err != nil {
		t.Fatal(err)
	}
	p.Do(chromedp.EmulateViewport(v.Width, v.Height), chromedp.Navigate(address))
	return p
}

// record records events that must not happen.
func (p *Page) record(event any) {
	problem := ""
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		problem = "exception: " + e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			problem += " " + e.ExceptionDetails.Exception.Description
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError {
			problem = "console.error"
			for _, a := range e.Args {
				problem += fmt.Sprintf(" %s%s", a.Description, a.Value)
			}
		}
	case *log.EventEntryAdded:
		if e.Entry.Level == log.EntryLevelError {
			problem = "log: " + e.Entry.Text + " " + e.Entry.URL
		}
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, p.allowed) && !strings.HasPrefix(url, "data:") {
			problem = "request: " + url
		}
	}
	if problem != "" {
		p.mu.Lock()
		p.problems = append(p.problems, problem)
		p.mu.Unlock()
	}
}

// Check fails the test for every recorded event.
func (p *Page) Check() {
	p.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, problem := range p.problems {
		p.Error(problem)
	}
	p.problems = nil
}

// Do runs actions of the browser.
func (p *Page) Do(actions ...chromedp.Action[chromedp.Void]) {
	p.Helper()
	if err := chromedp.Do(p.ctx, actions...); err != nil {
		p.Fatal(err)
	}
}

// Resize changes the size of the window.
func (p *Page) Resize(width, height int64) { p.Do(chromedp.EmulateViewport(width, height)) }

// Click clicks the first element that matches a CSS selector.
func (p *Page) Click(selector string) {
	p.Helper()
	p.onElement(chromedp.Click(chromedp.CSS(selector)))
}

// Type types a text into an input.
func (p *Page) Type(selector, text string) {
	p.Helper()
	p.onElement(chromedp.SendKeys(chromedp.CSS(selector), text))
}

// onElement runs an action on an element. If the page is drawn anew after the element was found and before the action reaches it, nothing has
// happened yet, and the element is looked for again.
func (p *Page) onElement(action chromedp.Action[chromedp.Void]) {
	p.Helper()
	err := chromedp.Do(p.ctx, action)
	for err != nil && strings.Contains(err.Error(), "Could not find node with given id") && p.ctx.Err() == nil {
		err = chromedp.Do(p.ctx, action)
	}
	if err != nil {
		p.Fatal(err)
	}
}

// Run executes JavaScript.
func (p *Page) Run(script string) { evaluate[chromedp.Void](p, script) }

// Text returns the value of a JavaScript expression whose value is a string.
func (p *Page) Text(expression string) string { return evaluate[string](p, expression) }

// Number returns the value of a JavaScript expression whose value is a number.
func (p *Page) Number(expression string) float64 { return evaluate[float64](p, expression) }

// Wait waits until a JavaScript expression is true, also across a navigation, during which no page exists for a moment.
func (p *Page) Wait(expression string) {
	p.Helper()
	for {
		is, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool]("Boolean("+expression+")"))
		switch {
		case err == nil && is:
			return
		case p.ctx.Err() != nil:
			p.Fatalf("%s does not become true: %v", expression, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func evaluate[T any](p *Page, expression string) T {
	p.Helper()
	value, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return value
}

// shots is the folder in which tests write screenshots.
var shots = flag.String("shots", "", "folder for screenshots of tests in the browser; none by default")

// Shot writes a picture to NAME.png in the folder of the flag -shots: of the complete page if whole is true, otherwise of the
// window.
func (p *Page) Shot(name string, whole bool) {
	p.Helper()
	if *shots == "" {
		return
	}
	action := chromedp.CaptureScreenshot()
	if whole {
		action = chromedp.FullScreenshot(100)
	}
	png, err := chromedp.Run(p.ctx, action)
	if err == nil {
		err = os.WriteFile(filepath.Join(*shots, name+".png"), png, 0o600)
	}
	if err != nil {
		p.Fatal(err)
	}
}
