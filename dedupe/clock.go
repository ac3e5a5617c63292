package dedupe

import "time"

// Clock is where a [Gate] reads the time and how it waits, so that its logic
// can run under a fake clock.
type Clock interface {
	Now() time.Time
	// AfterFunc calls f in a goroutine of its own once d has passed. The
	// returned function stops that, if it is not too late, and reports whether
	// it was not.
	AfterFunc(d time.Duration, f func()) (stop func() bool)
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) AfterFunc(d time.Duration, f func()) func() bool {
	return time.AfterFunc(d, f).Stop
}

// alarm returns a channel that is closed once d has passed, and a function that
// gives it up.
func alarm(c Clock, d time.Duration) (<-chan struct{}, func() bool) {
	rang := make(chan struct{})
	return rang, c.AfterFunc(d, func() { close(rang) })
}
