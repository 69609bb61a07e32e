//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// loop contains the connections of a load. One thread serves them with epoll, because with goroutines every response would
// require a switch to another goroutine.
type loop struct {
	poll    int
	request []byte
	sockets []*socket
	buffer  []byte
}

// socket is one keep-alive connection. Writes block; reads happen when epoll reports data.
type socket struct {
	file  *os.File
	fd    int
	asked int       // number of requests sent
	due   time.Time // due time of the open request, or of the next one
	open  bool      // a request is open
	done  bool      // no further request is due
	head  []byte    // header of the response, as far as received
	left  int       // number of missing bytes of the body; -1 before the end of the header
}

func newLoop(address string, request []byte, n int) (*loop, error) {
	poll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	l := &loop{poll: poll, request: request, buffer: make([]byte, 64<<10)}
	for k := range n {
		if err := l.connect(k, address); err != nil {
			return nil, errors.Join(err, l.close())
		}
	}
	return l, nil
}

func (l *loop) connect(k int, address string) error {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return err
	}
	defer c.Close()
	file, err := c.(*net.TCPConn).File()
	if err != nil {
		return err
	}
	s := &socket{file: file, fd: int(file.Fd())} // Fd makes it blocking
	l.sockets = append(l.sockets, s)
	return syscall.EpollCtl(l.poll, syscall.EPOLL_CTL_ADD, s.fd, &syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(k)})
}

func (l *loop) close() error {
	errs := []error{syscall.Close(l.poll)}
	for _, s := range l.sockets {
		errs = append(errs, s.file.Close())
	}
	return errors.Join(errs...)
}

// run sends the requests that next schedules and returns the latencies.
func (l *loop) run(next func(k, i int) (due time.Time, ok bool)) (latencies []time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	advance := func(k int) {
		s := l.sockets[k]
		var ok bool
		s.due, ok = next(k, s.asked)
		s.asked, s.open, s.done = s.asked+1, false, !ok
	}
	for k := range l.sockets {
		advance(k)
	}
	for {
		wait, busy, err := l.send()
		if err != nil || !busy {
			return latencies, err
		}
		ready, err := l.ready(wait)
		if err != nil {
			return latencies, err
		}
		for _, k := range ready {
			s := l.sockets[k]
			answered, err := s.receive(l.buffer)
			if err != nil {
				return latencies, err
			}
			if answered {
				latencies = append(latencies, time.Since(s.due))
				advance(k)
			}
		}
	}
}

// send sends the requests that are due. It returns the time until the next one is due, and busy = false if all connections are
// done.
func (l *loop) send() (wait time.Duration, busy bool, err error) {
	wait = time.Minute // without a response in that time, the server hangs
	now := time.Now()
	for _, s := range l.sockets {
		if s.done {
			continue
		}
		busy = true
		if s.open {
			continue
		}
		if left := s.due.Sub(now); left > 0 {
			wait = min(wait, left)
			continue
		}
		s.open, s.left, s.head = true, -1, s.head[:0]
		for rest := l.request; len(rest) > 0; {
			n, _, code := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(s.fd), uintptr(unsafe.Pointer(&rest[0])), uintptr(len(rest)))
			if code != 0 && code != syscall.EINTR {
				return 0, false, code
			}
			if code == 0 {
				rest = rest[n:]
			}
		}
	}
	return wait, busy, nil
}

// epollPwait2 is the number of a system call of Linux 5.11 whose timeout is not rounded to milliseconds.
const epollPwait2 = 441

// ready returns the connections that have data, none after the timeout.
func (l *loop) ready(wait time.Duration) (ready []int, err error) {
	var events [64]syscall.EpollEvent
	limit := syscall.NsecToTimespec(wait.Nanoseconds())
	n, _, code := syscall.Syscall6(epollPwait2, uintptr(l.poll), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(unsafe.Pointer(&limit)), 0, 0)
	if code != 0 && code != syscall.EINTR {
		return nil, fmt.Errorf("epoll_pwait2: %w", code)
	}
	if code == 0 && n == 0 && wait == time.Minute {
		return nil, errors.New("got no response within a minute")
	}
	if code == 0 {
		for _, e := range events[:n] {
			ready = append(ready, int(e.Fd))
		}
	}
	return ready, nil
}

// receive reads the available data and reports whether the response is complete. It parses only the necessary parts of HTTP,
// to leave the CPU to the server.
func (s *socket) receive(buffer []byte) (complete bool, err error) {
	n, _, code := syscall.RawSyscall(syscall.SYS_READ, uintptr(s.fd), uintptr(unsafe.Pointer(&buffer[0])), uintptr(len(buffer)))
	switch {
	case code == syscall.EINTR:
		return false, nil
	case code != 0:
		return false, code
	case n == 0:
		return false, errors.New("the server closed the connection")
	case !s.open:
		return false, fmt.Errorf("got %q without a request", buffer[:n])
	}
	if s.left < 0 {
		s.head = append(s.head, buffer[:n]...)
		end := bytes.Index(s.head, []byte("\r\n\r\n"))
		if end < 0 {
			return false, nil
		}
		if s.left, err = length(s.head[:end+2]); err != nil {
			return false, err
		}
		n = uintptr(len(s.head) - end - 4)
	}
	s.left -= int(n)
	if s.left < 0 {
		return false, errors.New("got more than a response")
	}
	return s.left == 0, nil
}

// length returns the length of the body that a header announces.
func length(head []byte) (int, error) {
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 200")) {
		return 0, fmt.Errorf("got %q", head)
	}
	for line := range bytes.Lines(head) {
		name, value, _ := bytes.Cut(line, []byte(": "))
		if bytes.EqualFold(name, []byte("Content-Length")) {
			return strconv.Atoi(string(bytes.TrimSpace(value)))
		}
	}
	return 0, errors.New("a response without Content-Length")
}
