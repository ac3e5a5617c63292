package filestore

// table is a map in many small parts. A map never gives memory back and must be
// walked as a whole; a part can be walked, and replaced by a smaller one,
// in a time that callers do not notice.
type table[V any] struct {
	parts []part[V]
	next  int // the part to sweep next
	count int
}

type part[V any] struct {
	m    map[hash]V
	peak int // the largest size of m
}

// newTable returns a table of n parts; n is a power of two, at most 65536.
func newTable[V any](n int) table[V] {
	return table[V]{parts: make([]part[V], n)}
}

func (t *table[V]) part(h hash) *part[V] {
	return &t.parts[(int(h[0])|int(h[1])<<8)&(len(t.parts)-1)]
}

func (t *table[V]) get(h hash) (V, bool) {
	v, ok := t.part(h).m[h]
	return v, ok
}

func (t *table[V]) set(h hash, v V) {
	p := t.part(h)
	if p.m == nil {
		p.m = make(map[hash]V)
	}
	before := len(p.m)
	p.m[h] = v
	t.count += len(p.m) - before
	p.peak = max(p.peak, len(p.m))
}

func (t *table[V]) del(h hash) {
	p := t.part(h)
	before := len(p.m)
	delete(p.m, h)
	t.count += len(p.m) - before
}

// shrinkFrom is the size below which a part is not worth replacing.
const shrinkFrom = 32

// sweep drops what is expired from the next part.
func (t *table[V]) sweep(expired func(V) bool) {
	p := &t.parts[t.next]
	t.next = (t.next + 1) % len(t.parts)
	before := len(p.m)
	for h, v := range p.m {
		if expired(v) {
			delete(p.m, h)
		}
	}
	t.count += len(p.m) - before
	if p.peak >= shrinkFrom && len(p.m) <= p.peak/2 {
		p.shrink()
	}
}

// shrink replaces the map by one of the size that is needed now.
func (p *part[V]) shrink() {
	var m map[hash]V
	if len(p.m) > 0 {
		m = make(map[hash]V, len(p.m))
		for h, v := range p.m {
			m[h] = v
		}
	}
	p.m, p.peak = m, len(m)
}
