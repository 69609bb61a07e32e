//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"log"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// server is a measured process. It prints the address of its model in the first line of standard error.
type server struct {
	name    string
	command *exec.Cmd
	request func(host, path string) []byte
	address string
	sent    []byte
	pids    []int
}

// ours returns tessera serve with the given maximum batch size.
func (s *settings) ours(name, run string, batch int) *server {
	command := exec.Command(s.tessera, "serve", "model="+run, "--listen", "127.0.0.1:0", "--max-batch", strconv.Itoa(batch), "--reload", "-1s")
	return &server{name: name, command: command, request: s.request}
}

// peer returns onnxruntime-node behind node's http server, nil without a model.
func (s *settings) peer() *server {
	if s.onnx == "" {
		return nil
	}
	script, err := filepath.Abs("load/node_server.cjs")
	if err != nil {
		log.Fatal(err)
	}
	onnx, err := filepath.Abs(s.onnx)
	if err != nil {
		log.Fatal(err)
	}
	command := exec.Command("node", script, onnx, strconv.Itoa(s.workers))
	command.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(s.modules, "node_modules"))
	return &server{name: fmt.Sprintf("onnxruntime-node, %d process(es)", s.workers), command: command, request: s.request}
}

func (v *server) start() error {
	out, err := v.command.StderrPipe()
	if err != nil {
		return err
	}
	if err := v.command.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	at, parsed := url.Parse(strings.TrimSpace(line))
	if err != nil || parsed != nil || at.Host == "" {
		rest, _ := io.ReadAll(lines)
		return errors.Join(fmt.Errorf("%s: got %q, want the address of the model: %s", v.name, line, rest), v.stop())
	}
	go func() { _, _ = io.Copy(os.Stderr, lines) }()
	v.address, v.sent = at.Host, v.request(at.Host, at.Path+"/infer")
	v.pids = append(children(v.command.Process.Pid), v.command.Process.Pid)
	return nil
}

func (v *server) stop() error {
	_ = v.command.Process.Signal(syscall.SIGTERM)
	return v.command.Wait()
}

// children returns the processes that a process has started.
func children(pid int) (pids []int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	for _, word := range strings.Fields(string(text)) {
		if child, err := strconv.Atoi(word); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}

// cpu returns the CPU time that the server has used.
func (v *server) cpu() (total time.Duration, err error) {
	for _, pid := range v.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0, err
		}
		_, after, _ := strings.Cut(string(text), ") ") // the name may hold spaces
		fields := strings.Fields(after)
		for _, at := range []int{11, 12} { // utime and stime, in hundredths of a second
			ticks, err := strconv.Atoi(fields[at])
			if err != nil {
				return 0, err
			}
			total += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return total, nil
}

// resident returns the resident memory of the server in MiB.
func (v *server) resident() (float64, error) {
	total := 0.0
	for _, pid := range v.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0, err
		}
		_, after, _ := strings.Cut(string(text), "VmRSS:")
		kib, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
		if err != nil {
			return 0, err
		}
		total += kib / 1024
	}
	return total, nil
}
