package verify

import (
	"fmt"
	"strconv"
	"time"
)

// farFuture is the last second of the year 9999: beyond it arithmetic on times
// overflows, and no sender means it.
const farFuture = 253402300799

// parseTime reads a timestamp. Unix times are plain ASCII digits, without sign.
func parseTime(s, unit string) (time.Time, bool) {
	if unit == RFC3339 {
		t, err := time.Parse(time.RFC3339, s)
		return t, err == nil
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return time.Time{}, false
		}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return time.Time{}, false
	}
	if unit == UnixMillis {
		return time.UnixMilli(n), n <= farFuture*1000
	}
	return time.Unix(n, 0), n <= farFuture
}

func formatTime(t time.Time, unit string) string {
	switch unit {
	case RFC3339:
		return t.UTC().Format(time.RFC3339)
	case UnixMillis:
		return strconv.FormatInt(t.UnixMilli(), 10)
	}
	return strconv.FormatInt(t.Unix(), 10)
}

// checkTime returns the time that raw says and whether it is within the
// tolerance of now, in either direction and inclusive. A negative tolerance
// accepts every time; one that cannot be read is then zero.
func checkTime(raw, unit string, tolerance time.Duration, now time.Time) (time.Time, error) {
	t, ok := parseTime(raw, unit)
	if tolerance < 0 {
		if !ok {
			return time.Time{}, nil
		}
		return t, nil
	}
	if !ok {
		return time.Time{}, ErrStale.because("the signed timestamp is not in the unit " + unit + hint(raw, unit, now))
	}
	age := now.Sub(t)
	if age > tolerance || age < -tolerance {
		err := ErrStale.because("the signed timestamp is " + describe(age) + ", the tolerance is " + tolerance.String() + hint(raw, unit, now))
		err.Age = age
		return time.Time{}, err
	}
	return t, nil
}

// bodyTime returns the time in the body as it is written, or "" if there is not
// exactly one.
func (c *compiled) bodyTime(r *Request) string {
	value, err := findJSON(r.Body, c.timePath)
	if err != nil {
		return ""
	}
	text, _ := textAt(value)
	return text
}

// fillTime puts a time into the body, written as the one that is there.
func (c *compiled) fillTime(body []byte, now time.Time) ([]byte, error) {
	old, err := findJSON(body, c.timePath)
	if err != nil {
		return nil, fmt.Errorf("the body needs a member %s to be filled in: %w", c.scheme.Timestamp.JSON, err)
	}
	text := formatTime(now, c.scheme.Timestamp.Unit)
	if old[0] == '"' {
		text = strconv.Quote(text)
	}
	return replaced(body, old, text), nil
}

// judgeTime completes the result for a request whose signature is right, if its
// time is right too. A body is read for it only now.
func (c *compiled) judgeTime(res *Result, r *Request, tolerance time.Duration, now time.Time) (err error) {
	if !c.scheme.Timestamp.set() {
		return nil
	}
	if c.timePath != nil && res.rawTime == "" {
		res.rawTime = c.bodyTime(r)
	}
	if res.rawTime == "" && tolerance >= 0 {
		return ErrStale.because("the body holds no timestamp at " + c.scheme.Timestamp.JSON)
	}
	res.Timestamp, err = checkTime(res.rawTime, c.scheme.Timestamp.Unit, tolerance, now)
	return err
}

func describe(age time.Duration) string {
	text := age.Abs().Round(time.Millisecond).String()
	if age < 0 {
		return text + " in the future"
	}
	return text + " old"
}

// hint tells of another unit in which the timestamp would lie within a year of
// now: the usual cause of deliveries that all seem too old.
func hint(raw, unit string, now time.Time) string {
	const year = 366 * 24 * time.Hour
	for other, name := range map[string]string{UnixSeconds: "seconds", UnixMillis: "milliseconds", RFC3339: "RFC 3339"} {
		t, ok := parseTime(raw, other)
		if ok && other != unit && now.Sub(t).Abs() < year {
			return "; it looks like " + name
		}
	}
	return ""
}
