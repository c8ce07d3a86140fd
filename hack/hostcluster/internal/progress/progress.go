// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

// Package progress tells a person what long work is doing, how long each part took and how many are left.
package progress

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// heartbeat is the time after which a part that is still running says so, and then again and again.
const heartbeat = 20 * time.Second

// Printer prints numbered parts of one piece of work. It may be used by many goroutines.
type Printer struct {
	out   io.Writer
	now   func() time.Time
	total int
	begun time.Time

	mutex  sync.Mutex
	number int
}

// New returns a printer for work of total parts. The clock now is read at the start and at the end of each part.
func New(out io.Writer, total int, now func() time.Time) *Printer {
	return &Printer{out: out, now: now, total: total, begun: now()}
}

// Part runs work as the next part under name and prints its start, its end and its time. While it runs, detail (which may be
// nil) is asked now and then for a word on how far it is. The error is work's own.
func (p *Printer) Part(ctx context.Context, name string, detail func() string, work func(context.Context) error) error {
	p.mutex.Lock()
	p.number++
	label := fmt.Sprintf("[%*d/%d] %s", digits(p.total), p.number, p.total, name)
	begun := p.now()
	fmt.Fprintf(p.out, "%s ...\n", label)
	p.mutex.Unlock()

	ended := make(chan struct{})
	var beating sync.WaitGroup
	beating.Go(func() { p.beat(ended, label, begun, detail) })
	err := work(ctx)
	close(ended)
	beating.Wait()

	outcome := "done"
	if err != nil {
		outcome = "not done"
	}
	p.say("%s %s in %s\n", label, outcome, round(p.now().Sub(begun)))
	return err
}

// Skip counts a part that had nothing to do.
func (p *Printer) Skip(name, reason string) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.number++
	fmt.Fprintf(p.out, "[%*d/%d] %s: %s\n", digits(p.total), p.number, p.total, name, reason)
}

// Total prints what all parts took together.
func (p *Printer) Total(what string) {
	p.say("%s in %s\n", what, round(p.now().Sub(p.begun)))
}

func (p *Printer) beat(ended <-chan struct{}, label string, begun time.Time, detail func() string) {
	ticker := time.NewTicker(heartbeat)
	defer ticker.Stop()
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
			more := ""
			if detail != nil {
				more = ", " + detail()
			}
			p.say("%s still running, %s%s\n", label, round(p.now().Sub(begun)), more)
		}
	}
}

func (p *Printer) say(format string, args ...any) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	fmt.Fprintf(p.out, format, args...)
}

func digits(n int) int { return len(strconv.Itoa(n)) }

func round(d time.Duration) time.Duration {
	if d > time.Minute {
		return d.Round(time.Second)
	}
	return d.Round(100 * time.Millisecond)
}
