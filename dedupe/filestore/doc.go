// Package filestore keeps events in a local directory: an index in memory and
// an append-only log on disk. It serves one process on one machine, and wants a
// local file system.
//
// # What is promised
//
// No caller is told of a state before its record has been handed to the
// operating system: neither the caller that made the state nor another one
// that sees it. Killing the process at any point therefore loses nothing that
// was answered. What a power cut can take is bounded by [Sync].
//
// When a write or a sync fails, the calls it served fail, their effects are
// taken back, and every further call fails until the store has started a new
// segment, which it tries once a second. It never goes on in memory alone, and
// it never trusts a file again whose sync has failed.
//
// # Files
//
// The directory holds a lock and numbered segments, written one after the
// other. A segment begins with a header; its records each carry a length and a
// checksum, and each is the whole state of an event or binding, so that the
// last record of a key is its state. Keys are kept as 128-bit hashes under a
// random seed that every header repeats.
//
// A segment is closed when it is large, or old compared to how long its records
// live, and is unlinked when all records in it and in all older ones have
// expired. One long-lived record thus keeps the segments behind it, at longest
// for its own time to live; nothing is ever rewritten to save space. An event
// takes about 90 bytes of disk, and 30 to 60 of memory once it is done.
//
// # Opening
//
// Opening replays the segments. Claims are then as they were, and their leases
// start afresh in full: the processes that held them are gone, but what they
// sent may still be at work. A renewal that only moves the end of a lease is
// not written; one is written when the time to live on disk would otherwise fall
// behind by more than a sixteenth, so that a claim can expire that much early
// if the store was opened anew since.
//
// An unfinished write at the end of the last segment is cut off and logged; so
// is, in the part that was never synced, what follows blocks that a power cut
// kept from the disk. Any other damage is refused with a [DamageError].
//
// # Clocks
//
// Leases follow the monotonic clock. Times to live follow the wall clock, since
// they outlast the process: setting it back keeps records that much longer,
// setting it forward forgets them that much sooner. An expired event that was
// not swept yet is known again when the clock is set back to before its end;
// one that was swept is not.
package filestore
