package verify

import (
	"crypto/sha256"
	"errors"
	"slices"
)

// MaxBatch is how many events one body may carry at most.
const MaxBatch = 5000

// Batch reports whether one request may carry several events: whether an event
// id is taken from every element of an array.
func (v *Verifier) Batch() bool {
	return slices.ContainsFunc(v.schemes, func(c *compiled) bool { return c.batch })
}

// VerifyOnly reports whether no event id is taken ([NoID]).
func (v *Verifier) VerifyOnly() bool {
	return slices.ContainsFunc(v.schemes, func(c *compiled) bool { return c.verifyOnly() })
}

// EventIDs returns the ids of all events that a request carries, in the order of
// the body, one that is repeated as often: one id where the verifier is not for
// a Batch, none where it is VerifyOnly. Call it only after Verify, as EventID. A
// body with no event is an error of kind ErrMissingID, one with more than
// MaxBatch of kind ErrBadID, and an event without an id an error for all.
func (v *Verifier) EventIDs(r *Request, res Result) ([]ID, error) {
	c := v.schemes[res.scheme]
	switch {
	case c.verifyOnly():
		return nil, nil
	case c.batch:
		if err := c.checkContent(r); err != nil {
			return nil, err
		}
		return c.batchIDs(r)
	}
	id, err := v.EventID(r, res)
	if err != nil {
		return nil, err
	}
	return []ID{id}, nil
}

func (c *compiled) verifyOnly() bool { return c.eventID[0].kind == NoID }

// setBatch finds the array that the sources of the event id lead through.
func (c *compiled) setBatch() error {
	for _, s := range c.eventID {
		switch {
		case s.kind == NoID && len(c.eventID) > 1:
			return errors.New("event_id: none excludes every other source")
		case !s.path.each:
			continue
		case c.batch && !slices.Equal(c.array, s.path.names):
			return errors.New("event_id: all paths with [*] must lead through the same array")
		}
		c.batch, c.array = true, s.path.names
	}
	return nil
}

// batchIDs finds the id of every element of the array.
func (c *compiled) batchIDs(r *Request) ([]ID, error) {
	parts, err := c.sharedParts(r)
	if err != nil {
		return nil, err
	}
	array, err := findJSON(r.content(), c.array)
	if err != nil {
		return nil, err
	}
	switch array[0] {
	case '[':
	case 'n':
		return nil, ErrMissingID.because("null stands in the place of the array of events")
	default:
		return nil, ErrBadID.because("there is no array in the place of the events")
	}
	var ids []ID
	for element := range elements(array) {
		if len(ids) == MaxBatch {
			return nil, ErrBadID.because("the body carries too many events")
		}
		if err := c.elementParts(parts, element); err != nil {
			return nil, err
		}
		text, key := joined(parts)
		ids = append(ids, ID{Text: printable(text), Key: key, Sum: sha256.Sum256(element)})
	}
	if len(ids) == 0 {
		return nil, ErrMissingID.because("the array of events is empty")
	}
	return ids, nil
}

// sharedParts finds the parts of the id that all elements have in common.
func (c *compiled) sharedParts(r *Request) ([]idPart, error) {
	parts := make([]idPart, len(c.eventID))
	for i := range c.eventID {
		s := &c.eventID[i]
		if s.path.each {
			continue
		}
		var err error
		if parts[i].text, parts[i].key, err = s.find(r); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

// elementParts finds the parts of the id that are in an element of the array.
func (c *compiled) elementParts(parts []idPart, element []byte) error {
	for i, s := range c.eventID {
		if !s.path.each {
			continue
		}
		value, err := descend(element, s.path.rest)
		if err != nil {
			return err
		}
		if parts[i].text, parts[i].key, err = jsonID(value); err != nil {
			return err
		}
	}
	return nil
}
