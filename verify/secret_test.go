package verify

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestSecretsAreDecodedStrictly(t *testing.T) {
	for _, c := range []struct{ value, format, key string }{
		{"QUJD", Base64, "ABC"}, {"whsec_QUJD", Base64, "ABC"}, {"QUI=", Base64, "AB"},
		{"414243", Hex, "ABC"}, {"4a4A", Hex, "JJ"}, {"20", Hex, " "},
		{"whsec_QUJD", Text, "whsec_QUJD"}, {"a b", Text, "a b"}, {"clé-☃", Text, "clé-☃"}, {`"`, Text, `"`},
	} {
		if key, err := decodeSecret(c.value, c.format); err != nil || string(key) != c.key {
			t.Errorf("%s as %s: got %q, %v", c.value, c.format, key, err)
		}
	}
	for _, c := range []struct{ value, format string }{
		{"QUI", Base64}, {"QUJ=", Base64}, {"QU_D", Base64}, {"QU\nJD", Base64}, {"QU\r\nJD", Base64}, {"whsec_", Base64}, {"WHSEC_QUJD", Base64},
		{"whsec_whsec_QUJD", Base64}, {"414", Hex}, {"0x41", Hex}, {"zz", Hex}, {"QUJD", ""}, {"QUJD", "BASE64"},
	} {
		key, err := decodeSecret(c.value, c.format)
		if err == nil {
			t.Errorf("%q as %s: got %q", c.value, c.format, key)
		} else if strings.Contains(err.Error(), c.value) {
			t.Errorf("the secret is in %q", err)
		}
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	c := Config{Secrets: []Secret{{Value: testSecret}}}
	for _, format := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if out := fmt.Sprintf(format, c); strings.Contains(out, testSecret) {
			t.Errorf("%s: %s", format, out)
		}
	}
}

// TestFIPSOnlyModeRefusesAtNewAndNotInARequest runs itself in a process of that
// mode, since it can only be chosen at the start.
func TestFIPSOnlyModeRefusesAtNewAndNotInARequest(t *testing.T) {
	const long = "a key that is long enough for FIPS"
	if os.Getenv("VERIFY_TEST_FIPS") != "" {
		sha1Scheme := Scheme{Algorithm: SHA1}
		refused(t, customConfig(sha1Scheme, secrets(long)), "not allowed in FIPS 140-only mode")
		refused(t, customConfig(Scheme{}, secrets("short")), "not allowed in FIPS 140-only mode")
		accept(t, custom(t, Scheme{}, secrets(long)), post("{}", "X-Sig: "+sign(long, "{}")))
		fmt.Println("fips checked")
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestFIPSOnlyModeRefuses", "-test.v")
	cmd.Env = append(os.Environ(), "GODEBUG=fips140=only", "VERIFY_TEST_FIPS=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "fips checked") {
		t.Errorf("%v\n%s", err, out)
	}
}
