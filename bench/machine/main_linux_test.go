package machine

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) {
	if Inside() {
		insideMain()
		return
	}
	testkit.Main(m)
}
