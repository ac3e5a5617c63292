package dedupe

// Observer is told of what happens outside of any one delivery. Its methods
// must not block.
type Observer interface {
	// ClaimLost: a claim whose delivery still runs was taken over, because its
	// lease could not be renewed in time.
	ClaimLost(key string)
	// RenewFailed: a lease could not be renewed; it is tried again.
	RenewFailed(key string, err error)
	// Deferred: a settlement waits because the store could not take it.
	Deferred(key string, kind SettlementKind, err error)
	// Written: a settlement that waited was written.
	Written(key string, kind SettlementKind)
	// Lost: a settlement that waited was given up, because too many wait or the
	// process ends.
	Lost(key string, kind SettlementKind)
	// Spooled: a completion still waits when the process ends, and the next one
	// will write it.
	Spooled(key string)
	// SpoolFailed: completions that wait would not outlive the process.
	SpoolFailed(err error)
}

type nobody struct{}

func (nobody) ClaimLost(string)                       {}
func (nobody) RenewFailed(string, error)              {}
func (nobody) Deferred(string, SettlementKind, error) {}
func (nobody) Written(string, SettlementKind)         {}
func (nobody) Lost(string, SettlementKind)            {}
func (nobody) Spooled(string)                         {}
func (nobody) SpoolFailed(error)                      {}
