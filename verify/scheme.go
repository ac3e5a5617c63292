package verify

// Names of the algorithms, encodings, secret formats, timestamp units and id
// sources that configurations may use.
const (
	SHA1   = "sha1"
	SHA256 = "sha256"
	SHA512 = "sha512"

	Hex       = "hex"       // either case
	Base64    = "base64"    // standard alphabet, padded, canonical
	Base64URL = "base64url" // URL alphabet, padded or not, canonical
	Text      = "text"      // secrets only: the text itself is the key

	UnixSeconds = "unix_s"
	UnixMillis  = "unix_ms"
	RFC3339     = "rfc3339"

	FromHeader     = "header"
	FromJSON       = "json"
	FromQuery      = "query"
	FromForm       = "form"
	FromBodySHA256 = "body_sha256"
	NoID           = "none" // no id is taken: deliveries are verified and nothing more
)

// Scheme says how a sender signs.
type Scheme struct {
	// The headers that carry signatures. All of them and all their lines are
	// looked at; any signature may match. Names with `_` or `.` are refused,
	// since Caddy drops such headers. Required.
	Headers []string `json:"header,omitempty"`

	// What stands between several signatures in one header value. Spaces and
	// tabs around each item are ignored. Default: `,`; for `token` nothing, the
	// whole value is the token.
	Separator string `json:"separator,omitempty"`

	// Take only the items with one of these labels, as in `v1=...`, `v1,...` or
	// `v1/...`, and ignore all others. Default: every item is a signature.
	Labels []string `json:"label,omitempty"`

	// Fixed text in front of a signature (after the label, where there is one),
	// as in `sha256=`. Items without it are ignored. Default: none.
	Prefix string `json:"prefix,omitempty"`

	// The hash of the HMAC: `sha1`, `sha256` or `sha512`. Or a way of signing that
	// is no HMAC: `ed25519` and `ecdsa_sha256`, whose secret is the sender's public
	// key; `token`, whose header holds the secret itself, so that nothing of the
	// delivery is signed. Default: `sha256`.
	Algorithm string `json:"algorithm,omitempty"`

	// How signatures are written: `hex`, `base64` or `base64url`. Default: `hex`;
	// `token` has none.
	Encoding string `json:"encoding,omitempty"`

	// The bytes that are signed: a template of literal text and `{body}`,
	// `{timestamp}`, `{id}`, `{url}` and `{method}`. It must contain `{body}`.
	// Default: `{body}`; `token` has none.
	Payload string `json:"payload,omitempty"`

	// Where `{timestamp}` comes from. Default: the scheme signs no timestamp.
	Timestamp Timestamp `json:"timestamp,omitzero"`

	// IDHeader is the header that `{id}` stands for. Presets set it. In a custom
	// scheme `{id}` is the route's event id, which must then be one header or
	// one query parameter. Default: none.
	IDHeader string `json:"-"`

	// SecretPrefix is what the secrets of this scheme begin with, where the
	// alternatives of a sender have keys of their own. A secret without the prefix
	// of any alternative belongs to those that have none. Presets set it.
	SecretPrefix string `json:"-"`

	// SecretFormat is the format of this scheme's secrets, where the alternatives
	// of a sender differ. Default: the sender's, or the route's.
	SecretFormat string `json:"-"`

	// Form names what no payload can say: `adyen`, `mailgun` and `twilio` have
	// code of their own. Presets set it.
	Form string `json:"-"`
}

// Timestamp says where the signed time of a delivery is. At most one of Field,
// Header and JSON may be set.
type Timestamp struct {
	// The label of the item of the signature header that holds the time, as the
	// `t` in `t=1767225600,v1=...`. Default: none.
	Field string `json:"field,omitempty"`

	// A header of its own that holds the time. Default: none.
	Header string `json:"header,omitempty"`

	// The path to the member of the signed JSON body that holds the time.
	// Default: none.
	JSON string `json:"json,omitempty"`

	// How the time is written: `unix_s`, `unix_ms` or `rfc3339`.
	// Default: `unix_s`.
	Unit string `json:"unit,omitempty"`
}

func (t Timestamp) set() bool { return t.Field != "" || t.Header != "" || t.JSON != "" }

// IDSource says where the id of the event, or one part of it, is found.
type IDSource struct {
	// `header`, `json`, `query`, `form`, `body_sha256`, or, for no id at all, `none`.
	// Required.
	Kind string `json:"kind"`

	// The name of the header or the query parameter, or the path to the member
	// of the JSON body: member names with dots between them, where `\.` is a dot
	// inside a name; `$.` may stand in front. `[*]` after a name, or `$[*]`, is
	// every element of an array, for bodies that carry several events. Empty for
	// `body_sha256` and `none`.
	Name string `json:"name,omitempty"`
}

// withDefaults returns the scheme with every default written out.
func (s Scheme) withDefaults() Scheme {
	s.Algorithm = or(s.Algorithm, SHA256)
	if !algorithms[s.Algorithm].Static {
		s.Separator = or(s.Separator, ",")
		s.Encoding = or(s.Encoding, Hex)
		if s.Form == "" {
			s.Payload = or(s.Payload, "{body}")
		}
	}
	if s.Timestamp.set() {
		s.Timestamp.Unit = or(s.Timestamp.Unit, UnixSeconds)
	}
	return s
}

func or(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
