package registries

import (
	"testing"

	"github.com/fulmar-rpc/fulmar/internal/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }
