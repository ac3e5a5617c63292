package caddymodule

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// logBook keeps what a configuration logs, as the text that a log file holds.
type logBook struct {
	name string
	mu   sync.Mutex
	text bytes.Buffer
}

// logBooks are all log books, by name.
var logBooks sync.Map

func newLogBook() *logBook {
	b := &logBook{name: fmt.Sprintf("book-%d", serial.Add(1))}
	logBooks.Store(b.name, b)
	return b
}

func (b *logBook) config() json.RawMessage {
	return json.RawMessage(`{"module":"test","name":"` + b.name + `"}`)
}

func (b *logBook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logBook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// lines returns the lines with that message.
func (b *logBook) lines(t *testing.T, message string) []map[string]any {
	t.Helper()
	var found []map[string]any
	for d := json.NewDecoder(bytes.NewBufferString(b.String())); d.More(); {
		var line map[string]any
		if err := d.Decode(&line); err != nil {
			t.Fatal(err)
		}
		if line["msg"] == message {
			found = append(found, line)
		}
	}
	return found
}

// last returns the last line with that message.
func (b *logBook) last(t *testing.T, message string) map[string]any {
	t.Helper()
	lines := b.lines(t, message)
	if len(lines) == 0 {
		t.Fatalf("nothing says %q in:\n%s", message, b)
	}
	return lines[len(lines)-1]
}

// logCore is the log core module that writes into a log book.
type logCore struct {
	zapcore.Core `json:"-"`
	Name         string `json:"name"`
}

func (logCore) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.logging.cores.test", New: func() caddy.Module { return new(logCore) }}
}

func (c *logCore) Provision(caddy.Context) error {
	book, _ := logBooks.Load(c.Name)
	encoder := zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig())
	c.Core = zapcore.NewCore(encoder, zapcore.AddSync(book.(*logBook)), zapcore.DebugLevel)
	return nil
}

func init() { caddy.RegisterModule(logCore{}) }

// caddyRegistry is a registry such as Caddy makes for a configuration.
func caddyRegistry(t *testing.T) *prometheus.Registry {
	t.Helper()
	registry := prometheus.NewPedanticRegistry()
	if err := metrics.register(registry); err != nil {
		t.Fatal(err)
	}
	return registry
}
