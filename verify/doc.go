// Package verify proves that a webhook delivery came from its sender and reads
// the id of the event that it carries.
//
// How a sender signs is data: a [Scheme]. The senders known by name are rows of
// one table ([SenderNamed]). [New] turns a [Config] into a [Verifier], which is
// safe for concurrent use:
//
//	v, err := verify.New(verify.Config{
//		Sender:  "stripe",
//		Secrets: []verify.Secret{{Value: "whsec_..."}},
//	})
//	...
//	res, err := v.Verify(req, time.Now()) // first: is it genuine?
//	id, err := v.EventID(req, res)        // only then: which event is it?
//
// Only symmetric HMAC signatures that are carried in headers are covered.
// Senders that sign with a public key, sort form parameters before signing, or
// put the signature into the body cannot be expressed.
package verify
