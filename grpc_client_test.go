package fulmar

import (
	"strings"
	"testing"
)

func TestGRPC_CodeOfStatus(t *testing.T) {
	for _, c := range []struct {
		number  uint32
		message string
		want    Code
	}{
		{5, "", NotFound}, {16, "", Unauthenticated}, {99, "", Unknown}, {1 << 31, "", Unknown},
		{1, "the caller left", Canceled}, {1, "unknown method Put", Unimplemented}, {20, "unknown service", Unimplemented}, {17, "", DeadlineExceeded},
	} {
		if got := codeOfStatus(c.number, c.message); got != c.want {
			t.Errorf("%d %q: %v, want %v", c.number, c.message, got, c.want)
		}
	}
}

func TestGRPC_ConfigOfClient(t *testing.T) {
	good := ClientConfig{Target: "127.0.0.1:1", Protocol: GRPC}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	bad := good
	bad.AssumeMultiplexed, bad.QualifiedNames = true, true
	for _, field := range []string{"AssumeMultiplexed", "QualifiedNames"} {
		if err := bad.Validate(); err == nil || !strings.Contains(err.Error(), field+": gRPC") {
			t.Errorf("%s: %v", field, err)
		}
	}
	var protocol Protocol
	if err := protocol.UnmarshalText([]byte("grpc")); err != nil || protocol != GRPC {
		t.Errorf("%v, %v", protocol, err)
	}
	client := &Client{config: good, protocol: GRPC}
	if got := client.authority("unix:///run/x"); got != "localhost" {
		t.Errorf("authority of a socket: %q", got)
	}
	if got := client.authority("127.0.0.1:1"); got != "127.0.0.1:1" {
		t.Errorf("authority of an address: %q", got)
	}
}
