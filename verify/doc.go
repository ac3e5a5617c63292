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
// Signatures are HMACs. Other algorithms are in packages of their own, which make
// them known to this one when a program imports them ([RegisterAlgorithm]).
package verify
