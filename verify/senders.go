package verify

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// SenderNamed returns the preset of that name, and whether there is one.
func SenderNamed(name string) (Sender, bool) {
	for _, s := range presets() {
		if s.Name == name {
			return s, true
		}
	}
	return Sender{}, false
}

// Senders returns the names of all presets, in alphabetical order.
func Senders() []string {
	var names []string
	for _, s := range presets() {
		names = append(names, s.Name)
	}
	return names
}

// CheckSender returns an error that says why there is no preset of that name.
func CheckSender(name string) error {
	if _, ok := SenderNamed(name); ok {
		return nil
	}
	if reason, ok := notOffered[name]; ok {
		return errors.New("sender " + name + ": " + reason)
	}
	return fmt.Errorf("unknown sender %q; there are %s", name, strings.Join(Senders(), ", "))
}

// notOffered are senders that no gateway can take copies away from, and why.
var notOffered = map[string]string{
	"docker-hub":     "Docker Hub signs nothing and sends no id, so nothing can be verified or told apart",
	"mollie":         mollieClassic,
	"mollie-classic": mollieClassic,
}

const mollieClassic = "Mollie's classic webhooks are not signed, and every change of a payment's status has the same body: to drop copies would be to lose events. " +
	"Use Mollie's next-generation webhooks with the sender mollie-next"

// presets returns the table anew each time, so that nobody can change it. The
// entries are in the senders_*.go files.
func presets() []Sender {
	all := slices.Concat(standardSenders(), paymentSenders(), shopSenders(), developerSenders(), messageSenders(), officeSenders(), tokenSenders(), specialSenders())
	for i := range all {
		all[i].SecretFormat = or(all[i].SecretFormat, Text)
	}
	slices.SortFunc(all, func(a, b Sender) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

const day = 24 * time.Hour

// The forms that several senders share.

// signsBody is a signature over the body alone.
func signsBody(header, prefix, algorithm, encoding string) []Scheme {
	return []Scheme{{Headers: []string{header}, Prefix: prefix, Algorithm: algorithm, Encoding: encoding}}
}

// signsField is the form that Stripe made common: t=<unix seconds>,v1=<hex>.
func signsField(header string) []Scheme { return signsFieldAs(header, "v1", UnixSeconds) }

// signsFieldAs is signsField with another label or unit.
func signsFieldAs(header, label, unit string) []Scheme {
	return []Scheme{{
		Headers: []string{header}, Labels: []string{label},
		Payload: "{timestamp}.{body}", Timestamp: Timestamp{Field: "t", Unit: unit},
	}}
}

// signsHeader is a signature over a payload with a timestamp from a header.
func signsHeader(header, prefix, encoding, payload string, timestamp Timestamp) []Scheme {
	return []Scheme{{Headers: []string{header}, Prefix: prefix, Encoding: encoding, Payload: payload, Timestamp: timestamp}}
}

// standardWebhooks is the form that Svix made common: three headers, and a list
// of signatures with spaces between them.
func standardWebhooks(prefix string) Scheme {
	return Scheme{
		Headers:   []string{prefix + "-signature"},
		Separator: " ",
		Labels:    []string{"v1"},
		Encoding:  Base64,
		Payload:   "{id}.{timestamp}.{body}",
		Timestamp: Timestamp{Header: prefix + "-timestamp"},
		IDHeader:  prefix + "-id",
	}
}

// inHeaders is an id that one header holds, or several together.
func inHeaders(names ...string) (ids []IDSource) {
	for _, name := range names {
		ids = append(ids, IDSource{FromHeader, name})
	}
	return ids
}

// inBody is an id that one member of the body holds, or several together.
func inBody(paths ...string) (ids []IDSource) {
	for _, path := range paths {
		ids = append(ids, IDSource{FromJSON, path})
	}
	return ids
}
