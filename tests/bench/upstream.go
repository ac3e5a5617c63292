package main

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"time"
)

// received is the upstream's answer to every request.
const received = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n" + `{"ok":true}`

// serveUpstream is the subcommand that receives webhooks at an address. It is as
// cheap as can be, so that the core that it shares is not what limits the
// programs under test. A request may ask to be held.
func serveUpstream(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	go exitWithParent()
	for {
		conn, err := l.Accept()
		if err != nil {
			return err
		}
		go receive(conn)
	}
}

func receive(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReaderSize(conn, 16<<10)
	for {
		m, err := readMessage(r)
		if err != nil {
			return
		}
		if m.hold != "" {
			d, err := time.ParseDuration(m.hold)
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return
			}
			time.Sleep(d)
		}
		if _, err := conn.Write([]byte(received)); err != nil {
			return
		}
	}
}

// exitWithParent ends this process when the one that started it has ended,
// which closes standard input.
func exitWithParent() {
	var b [1]byte
	for {
		if _, err := os.Stdin.Read(b[:]); err != nil {
			os.Exit(0)
		}
	}
}
