package redisstore

import (
	cmdline "flag"
	"os"
	"testing"
)

// TestMain lets more tests run at once than there are processors: the parallel
// ones wait for servers to elect each other.
func TestMain(m *testing.M) {
	cmdline.Parse()
	if err := cmdline.Set("test.parallel", "6"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
