package tests

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"testing"

	"github.com/webhook-dedupe/caddy-webhook-dedupe/tests/harness"
)

// inShops runs a test in front of the shop, in each way that PHP is run.
func inShops(t *testing.T, test func(t *testing.T, shop *harness.PHP)) {
	t.Parallel()
	for name, start := range harness.Shops {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

// invoiceEvent is an event about an invoice, as Paymos sends it.
func invoiceEvent(t *testing.T, kind, invoice string) *harness.Delivery {
	t.Helper()
	id := harness.Unique("evt")
	body := fmt.Appendf(nil, `{"event_id":%q,"event_type":%q,"version":1,"data":{"invoice_id":%q,"amount":"10.00"}}`, id, kind, invoice)
	return harness.NewSender(t, "paymos").WithBody(id, body)
}

// assertOrder checks what the shop knows of an invoice.
func assertOrder(t *testing.T, shop *harness.PHP, invoice, want string) {
	t.Helper()
	if got := shop.Order(invoice); got != want {
		t.Fatalf("the shop has the order as %q, want %q", got, want)
	}
}

func TestAllEventsOfAnInvoicePassAndEachShipsOnce(t *testing.T) {
	inShops(t, func(t *testing.T, shop *harness.PHP) {
		g := harness.StartGateway(t, route("/pay", "paymos")+shop.Site)
		confirming, paid := invoiceEvent(t, "invoice.confirming", "inv_1"), invoiceEvent(t, "invoice.paid", "inv_1")
		g.Expect(t, confirming, "200 first")
		assertOrder(t, shop, "inv_1", "confirming 0")
		if a := g.Expect(t, paid, "200 first"); a.Body != "booked" || a.Header.Get("X-Shop") != "open" {
			t.Errorf("the sender got %q with %v", a.Body, a.Header)
		}
		for range 3 {
			g.Expect(t, paid, "200 duplicate")
			g.Expect(t, confirming, "200 duplicate")
		}
		assertOrder(t, shop, "inv_1", "paid 1")
	})
}

func TestShopSlowerThanTheSendersPatienceShipsOnce(t *testing.T) {
	inShops(t, func(t *testing.T, shop *harness.PHP) {
		g := harness.StartGateway(t, route("/pay", "paymos")+shop.Site)
		paid := invoiceEvent(t, "invoice.paid", "inv_1")
		shop.Hold(paid.Event)
		call := g.Begin(t, harness.HTTP1, paid)
		shop.Await(t, paid.Event, 1)
		g.Expect(t, paid, "503 in-flight")
		call.HangUp()
		g.Expect(t, paid, "503 in-flight")
		shop.Release(paid.Event)
		g.RetryUntil(t, paid, "200 duplicate", "503 in-flight")
		assertOrder(t, shop, "inv_1", "paid 1")
	})
}

func TestFailedEventIsReplayedAfterTheRepairAndShipsOnce(t *testing.T) {
	inShops(t, func(t *testing.T, shop *harness.PHP) {
		g := harness.StartGateway(t, route("/pay", "paymos")+shop.Site)
		paid := invoiceEvent(t, "invoice.paid", "inv_1")
		shop.Break()
		g.Expect(t, paid, "500 first")
		g.Expect(t, paid, "500 retry")
		shop.Repair()
		g.Expect(t, paid, "200 retry")
		g.Expect(t, paid, "200 duplicate")
		assertOrder(t, shop, "inv_1", "paid 1")
	})
}

func TestShopThatIsDownGetsTheEventWhenItIsBack(t *testing.T) {
	inShops(t, func(t *testing.T, shop *harness.PHP) {
		g := harness.StartGateway(t, route("/pay", "paymos", "lease 1h")+shop.Site)
		paid := invoiceEvent(t, "invoice.paid", "inv_1")
		shop.Kill()
		g.Expect(t, paid, "502 first")
		shop.Start()
		g.Expect(t, paid, "200 retry")
		g.Expect(t, paid, "200 duplicate")
		assertOrder(t, shop, "inv_1", "paid 1")
	})
}

func TestShopThatDiesOverAnEventGetsItMarkedAsAPossibleRepeat(t *testing.T) {
	inShops(t, func(t *testing.T, shop *harness.PHP) {
		g := harness.StartGateway(t, route("/pay", "paymos", "lease 3s")+shop.Site)
		paid := invoiceEvent(t, "invoice.paid", "inv_1")
		cut := invoiceEvent(t, "invoice.paid", "inv_2")
		shop.DieAt(paid.Event)
		shop.CutOffAt(cut.Event)
		for _, d := range []*harness.Delivery{paid, cut} {
			g.Expect(t, d, "502 first")
			g.Expect(t, d, "503 in-flight")
			g.RetryUntil(t, d, "200 possible-repeat", "503 in-flight")
			g.Expect(t, d, "200 duplicate")
			if seen := shop.Requests(d.Event); len(seen) != 2 || seen[1].Word != "possible-repeat" {
				t.Errorf("PHP saw %v", seen)
			}
		}
		assertOrder(t, shop, "inv_1", "paid 1")
		assertOrder(t, shop, "inv_2", "paid 1")
	})
}

func TestShopThatHangsIsSettledByItsLateAnswer(t *testing.T) {
	t.Parallel()
	shop := harness.StartFPM(t)
	g := harness.StartGateway(t, route("/pay", "paymos", "upstream_timeout 1s", "lease 1h")+shop.Site)
	paid := invoiceEvent(t, "invoice.paid", "inv_1")
	shop.Hold(paid.Event)
	g.Expect(t, paid, "504 first")
	g.Expect(t, paid, "503 in-flight")
	shop.Release(paid.Event)
	// FastCGI reads on after the time-out, and the lease of an hour need not end.
	g.RetryUntil(t, paid, "200 duplicate", "503 in-flight")
	assertOrder(t, shop, "inv_1", "paid 1")
}

func TestShopThatHangsGetsTheEventAgainAfterTheLease(t *testing.T) {
	inShops(t, func(t *testing.T, shop *harness.PHP) {
		g := harness.StartGateway(t, route("/pay", "paymos", "upstream_timeout 1s", "lease 3s")+shop.Site)
		paid := invoiceEvent(t, "invoice.paid", "inv_1")
		shop.Hold(paid.Event)
		if a := g.Expect(t, paid, "504 first"); a.Header.Get("Retry-After") == "" {
			t.Error("no Retry-After for an event in doubt")
		}
		g.RetryUntil(t, paid, "504 possible-repeat", "503 in-flight")
		shop.Release(paid.Event)
		g.RetryUntil(t, paid, "200 duplicate|200 possible-repeat", "503 in-flight")
		g.Expect(t, paid, "200 duplicate")
	})
}

func TestPHPGetsBodiesAndHeadersAsSent(t *testing.T) {
	inShops(t, func(t *testing.T, shop *harness.PHP) {
		g := harness.StartGateway(t, route("/pay", "github")+shop.Site)
		s := harness.NewSender(t, "github")
		for _, size := range []int{0, 1, 10_000, 64<<10 + 1, 5 << 20} {
			for _, chunked := range []bool{false, true} {
				d := s.WithBody(harness.Unique("evt"), pattern(size)).With("Content-Type", "application/x-odd").With("X-Custom", "ünusual")
				d.Chunked = chunked
				g.Expect(t, d, "200 first")
				g.Expect(t, d, "200 duplicate")
				sum := sha256.Sum256(d.Body)
				want := harness.PHPRequest{
					Event: d.Event, Word: "first", Length: strconv.Itoa(size), Type: "application/x-odd",
					SHA256: hex.EncodeToString(sum[:]), Custom: "ünusual",
				}
				if got := shop.Requests(d.Event); len(got) != 1 || got[0] != want {
					t.Errorf("%d bytes, chunked %v: PHP saw %+v, want %+v", size, chunked, got, want)
				}
			}
		}
	})
}
