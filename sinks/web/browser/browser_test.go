//go:build browser

// Package browser tests the page in a real Chromium. There is no code to
// import; CI installs Debian's chromium package, and without one the tests fail.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

const (
	waitMax   = 60 * time.Second // for one thing on the page, on a busy machine
	pollEvery = 50 * time.Millisecond
)

// chromium returns the path of a browser, and fails the test without one.
func chromium(t testing.TB) string {
	t.Helper()
	for _, name := range []string{
		os.Getenv("CHROMIUM"), "chromium", "chromium-browser",
		"google-chrome",
	} {
		if name == "" {
			continue
		}
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("no Chromium: install Debian's chromium package, or name one in CHROMIUM")
	return ""
}

// page is a browser tab with the messages of its console.
type page struct {
	t       testing.TB
	ctx     context.Context
	mu      sync.Mutex
	console []string
}

// open starts a browser of its own, of the given size and colour scheme.
func open(t testing.TB, width, height int, scheme string) *page {
	t.Helper()
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(chromium(t)), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Headless, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(width, height),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("hide-scrollbars", false),
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	p := &page{t: t, ctx: ctx}
	messages := chromedp.Console(ctx) // starts the browser
	var listening sync.WaitGroup
	listening.Go(func() {
		for m, err := range messages {
			if err != nil {
				return
			}
			p.hear(m)
		}
	})
	t.Cleanup(func() {
		if err := chromedp.Cancel(ctx); err != nil {
			t.Logf("closing the browser: %v", err)
		}
		cancel()
		stop()
		listening.Wait()
	})
	p.do(chromedp.EmulateViewport(int64(width), int64(height)), colourScheme(scheme))
	return p
}

// colourScheme makes the system "light" or "dark".
func colourScheme(name string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, _ *chromedp.Target) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}},
		})
		return err
	})
}

// hear stores the warnings and errors of the console.
func (p *page) hear(m chromedp.ConsoleMessage) {
	switch {
	case m.IsException(), m.Type == "error", m.Type == "warning", m.Type == "assert":
		p.mu.Lock()
		p.console = append(
			p.console,
			fmt.Sprintf("%s %s: %s (%s)", m.Type, m.Source, m.Text, m.URL),
		)
		p.mu.Unlock()
	}
}

// said returns the messages of the console so far.
func (p *page) said() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.console...)
}

// quiet fails the test if the console has other messages than the expected ones.
func (p *page) quiet(expected ...string) {
	p.t.Helper()
	for _, line := range p.said() {
		fine := false
		for _, e := range expected {
			fine = fine || strings.Contains(line, e)
		}
		if !fine {
			p.t.Errorf("console: %s", line)
		}
	}
}

// do performs actions that return nothing.
func (p *page) do(actions ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitMax)
	defer cancel()
	if err := chromedp.Do(ctx, actions...); err != nil {
		p.t.Fatalf("browser: %v\nconsole: %q\npage: %s", err, p.said(), p.text())
	}
}

// text returns the visible text of the page, for the message of a failure.
func (p *page) text() string {
	ctx, cancel := context.WithTimeout(p.ctx, 5*time.Second)
	defer cancel()
	out, err := chromedp.Run(
		ctx,
		chromedp.Evaluate[string](`location.href + "\n" + document.body.innerText.slice(0, 1500)`),
	)
	if err != nil {
		return err.Error()
	}
	return out
}

// eval returns the value of a JavaScript expression, or of its promise.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, waitMax)
	defer cancel()
	out, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	if err != nil {
		p.t.Fatalf("%s: %v\nconsole: %q", expression, err, p.said())
	}
	return out
}

// until waits for a JavaScript expression to be true.
func (p *page) until(claim, expression string) {
	p.t.Helper()
	p.await(claim+": "+expression, func() bool { return eval[bool](p, "Boolean("+expression+")") })
}

// await waits for a condition. The browser is another process, so there is nothing to
// wait on but its answers.
func (p *page) await(claim string, holds func() bool) {
	p.t.Helper()
	end := time.Now().Add(waitMax)
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for !holds() {
		if time.Now().After(end) {
			p.t.Fatalf(
				"waited %v for %s\nconsole: %q\npage: %s", waitMax, claim, p.said(), p.text(),
			)
		}
		<-tick.C
	}
}

// visit loads an address in a fresh document.
func (p *page) visit(url string) {
	p.t.Helper()
	p.do(chromedp.Navigate("about:blank"), chromedp.Navigate(url))
}

// fits fails the test if the page is wider than the window.
func (p *page) fits() {
	p.t.Helper()
	if over := eval[int](p, `Math.max(document.documentElement.scrollWidth - innerWidth, `+
		`...[...document.querySelectorAll(".top, main, main > section")].map((e) => `+
		`e.scrollWidth - `+
		`e.clientWidth))`); over > 0 {
		p.t.Errorf("the page is %d px too wide", over)
	}
}

// axe fails the test for every finding of the accessibility checker, if AXE names the file
// axe.min.js of the npm package axe-core.
func (p *page) axe() {
	p.t.Helper()
	file := os.Getenv("AXE")
	if file == "" {
		return
	}
	code, err := os.ReadFile(file)
	if err != nil {
		p.t.Fatal(err)
	}
	p.until("what moves to have arrived", `document.getAnimations().length === 0`)
	for _, problem := range eval[[]string](p, string(code)+
		`; axe.run().then((r) => r.violations.flatMap((v) => v.nodes.map((n) => v.id + " (" + `+
		`v.impact + "): " + n.html.slice(0, 200) + " " + n.failureSummary)))`) {
		p.t.Errorf("%s: axe: %s", eval[string](p, "location.hash"), problem)
	}
}

// shot writes a picture of the page if the test was asked for pictures.
func (p *page) shot(name string) {
	p.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/"+name+".png", picture, 0o644); err != nil {
		p.t.Fatal(err)
	}
}

// tallShot does the same for all of a page that scrolls.
func (p *page) tallShot(name string, width int) {
	p.t.Helper()
	if os.Getenv("SCREENSHOTS") == "" {
		return
	}
	height := eval[int64](p, `document.querySelector("main").scrollHeight + 60`)
	p.do(chromedp.EmulateViewport(int64(width), height))
	eval[bool](
		p,
		`new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => `+
			`done(true))))`,
	)
	p.shot(name)
	p.do(chromedp.EmulateViewport(int64(width), 860))
}
