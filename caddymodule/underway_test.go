package caddymodule

import (
	"context"
	"sync"
	"testing"
)

func TestCounterWaitsForTheLastOne(t *testing.T) {
	c := newCounter()
	if n := c.wait(context.Background()); n != 0 {
		t.Errorf("%d at the start", n)
	}
	c.add()
	c.add()
	over, cancel := context.WithCancel(context.Background())
	cancel()
	if n := c.wait(over); n != 2 {
		t.Errorf("%d are under way", n)
	}
	waited := make(chan int)
	go func() { waited <- c.wait(context.Background()) }()
	c.done()
	select {
	case n := <-waited:
		t.Errorf("waited for %d only", n)
	default:
	}
	c.done()
	if n := receive(t, waited, "the counter"); n != 0 {
		t.Errorf("%d are left", n)
	}
}

func TestCounterStandsManyAtOnce(t *testing.T) {
	c := newCounter()
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			for range 100 {
				c.add()
				c.done()
			}
		})
	}
	all.Wait()
	if n := c.wait(context.Background()); n != 0 {
		t.Errorf("%d are left", n)
	}
}
