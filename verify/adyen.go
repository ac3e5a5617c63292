package verify

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// adyenForm is how Adyen signs notifications of payments: each item of the body
// holds the signature of eight of its fields, with colons between them and
// nothing escaped. The rest of an item is not signed. All items must be right.
// (Adyen/adyen-python-api-library, Adyen/util.py.)
//
// Only the merchant's own reference may hold colons. Another field with one could
// have been moved there from its neighbours, under the same signature: the same
// notification with another pspReference, and so another id.
type adyenForm struct{ c *compiled }

// adyenFields are the paths of what is signed, in an item.
var adyenFields = [...][]string{
	{"pspReference"}, {"originalReference"}, {"merchantAccountCode"}, {"merchantReference"},
	{"amount", "value"}, {"amount", "currency"}, {"eventCode"}, {"success"},
}

var (
	adyenItems     = []string{"notificationItems"}
	adyenItem      = []string{"NotificationRequestItem"}
	adyenSignature = []string{"additionalData", "hmacSignature"}
)

var (
	errAdyenBody  = ErrUnsigned.because("the body is no list of notificationItems")
	errAdyenColon = ErrForged.because("a signed field of an item holds a colon, and is not merchantReference: the signature could be that of other fields")
	errAdyenItem  = ErrUnsigned.because("an item has no additionalData.hmacSignature, or not one in the expected form")
)

func (f *adyenForm) present(*Request) bool { return true }

func (f *adyenForm) signsBody() bool { return false }

// signs knows the fields of an item, and only these.
func (f *adyenForm) signs(s idSource) bool {
	if s.kind != FromJSON || !s.path.each || !slices.Equal(s.path.names, adyenItems) {
		return false
	}
	return slices.ContainsFunc(adyenFields[:], func(field []string) bool {
		return slices.Equal(s.path.rest, slices.Concat(adyenItem, field))
	})
}

func (f *adyenForm) read(r *Request) (claims []claim, rawTime string, err error) {
	array, err := findJSON(r.Body, adyenItems)
	if err != nil || array[0] != '[' {
		return nil, "", errAdyenBody
	}
	for item := range elements(array) {
		if len(claims) == MaxBatch {
			return nil, "", ErrForged.because("the body has too many items")
		}
		x, err := f.claim(item)
		if err != nil {
			return nil, "", err
		}
		claims = append(claims, x)
	}
	if len(claims) == 0 {
		return nil, "", errAdyenBody
	}
	return claims, "", nil
}

func (f *adyenForm) claim(element []byte) (x claim, err error) {
	item, err := descend(element, adyenItem)
	if err != nil {
		return x, errAdyenBody
	}
	value, err := descend(item, adyenSignature)
	if err != nil || value[0] != '"' {
		return x, errAdyenItem
	}
	text, err := jsonText(value[1 : len(value)-1])
	digest := make([]byte, f.c.size)
	if err != nil || !decodeDigest(f.c.encoding, digest, text) {
		return x, errAdyenItem
	}
	message, err := adyenMessage(item)
	return claim{[][]byte{message}, [][]byte{digest}}, err
}

// adyenMessage joins the signed fields. One that is missing is empty.
func adyenMessage(item []byte) ([]byte, error) {
	var texts []string
	for _, field := range adyenFields {
		text, err := fieldText(item, field)
		switch {
		case err != nil:
			return nil, ErrForged.because("a signed field of an item is repeated, or no plain value")
		case strings.Contains(text, ":") && field[0] != "merchantReference":
			return nil, errAdyenColon
		}
		texts = append(texts, text)
	}
	return []byte(strings.Join(texts, ":")), nil
}

// fieldText returns a value as text: a missing one and null as nothing.
func fieldText(item []byte, field []string) (string, error) {
	value, err := descend(item, field)
	switch {
	case errors.Is(err, ErrMissingID):
		return "", nil
	case err != nil:
		return "", err
	}
	switch value[0] {
	case 'n':
		return "", nil
	case '{', '[':
		return "", ErrBadID
	case '"':
		if text, ok := unescape(value[1 : len(value)-1]); ok {
			return text, nil
		}
		return "", ErrBadID
	}
	return string(value), nil
}

// fill implements bodySigner: it replaces each item's signature.
func (f *adyenForm) fill(body []byte, _ time.Time, sign func([]byte) (string, error)) ([]byte, error) {
	for i := 0; ; i++ {
		array, err := findJSON(body, adyenItems)
		if err != nil || array[0] != '[' {
			return nil, errors.New("the body needs a list of notificationItems")
		}
		all := slices.Collect(elements(array))
		if i >= len(all) {
			return body, nil
		}
		item, err := descend(all[i], adyenItem)
		if err != nil {
			return nil, fmt.Errorf("item %d: %w", i+1, err)
		}
		old, err := descend(item, adyenSignature)
		if err != nil {
			return nil, fmt.Errorf("item %d needs an additionalData.hmacSignature to be filled in: %w", i+1, err)
		}
		message, err := adyenMessage(item)
		if err != nil {
			return nil, err
		}
		signature, err := sign(message)
		if err != nil {
			return nil, err
		}
		body = replaced(body, old, fmt.Sprintf("%q", signature))
	}
}
