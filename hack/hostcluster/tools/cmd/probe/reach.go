// Copyright The Tantilium Cloud Runner Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
)

const (
	// reachTimeout is how long an address may take to answer.
	reachTimeout = 2 * time.Second
	// windowTimeout bounds a try, windowPause is between the begins of two, and windowLength how long they go on.
	windowTimeout = 200 * time.Millisecond
	windowPause   = 10 * time.Millisecond
	windowLength  = 15 * time.Second
)

// question asks a DNS server for the root's name servers. Other servers of datagrams may send it back.
var question = []byte{0x2a, 0x2a, 0x01, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 1}

// reach tries all targets at the same time and says of each, in their order, whether it answers.
func reach(ctx context.Context, targets []string, out io.Writer) error {
	results := make([]error, len(targets))
	var tries sync.WaitGroup
	for i, target := range targets {
		tries.Go(func() { results[i] = try(ctx, target, reachTimeout) })
	}
	tries.Wait()
	for i, target := range targets {
		if results[i] == nil {
			fmt.Fprintf(out, "open %s\n", target)
		} else {
			fmt.Fprintf(out, "closed %s: %v\n", target, results[i])
		}
	}
	return nil
}

// window tries a target over and over from the start on and says when it answered last, in milliseconds.
func window(ctx context.Context, target string, out io.Writer) error {
	begun, last, tries, answers := time.Now(), time.Duration(0), 0, 0
	for time.Since(begun) < windowLength && ctx.Err() == nil {
		next := time.Now().Add(windowPause)
		tries++
		if try(ctx, target, windowTimeout) == nil {
			last = time.Since(begun)
			answers++
		}
		time.Sleep(time.Until(next))
	}
	fmt.Fprintf(out, "%d of %d tries were answered, the last %d ms after the start\n", answers, tries, last.Milliseconds())
	return nil
}

// try is nil when the target, tcp/ADDRESS or udp/ADDRESS, answers.
func try(ctx context.Context, target string, timeout time.Duration) error {
	network, address, _ := strings.Cut(target, "/")
	deadline := time.Now().Add(timeout)
	dialer := net.Dialer{Deadline: deadline}
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return err
	}
	if network != "udp" {
		return conn.Close()
	}
	return errors.Join(exchange(conn, deadline), conn.Close())
}

func exchange(conn net.Conn, deadline time.Time) error {
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	if _, err := conn.Write(question); err != nil {
		return err
	}
	_, err := conn.Read(make([]byte, 1500))
	return err
}

// echo sends every datagram back to where it came from until the connection is closed.
func echo(conn net.PacketConn) {
	buffer := make([]byte, 1500)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		// Whoever does not get it asks again.
		_, _ = conn.WriteTo(buffer[:n], from)
	}
}
