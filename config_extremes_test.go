package fulmar_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/fulmar-rpc/fulmar"
)

// setNumbers sets every number and duration of a configuration to what it can hold at
// most, or at least.
func setNumbers(config any, least bool) {
	value := reflect.ValueOf(config).Elem()
	for i := range value.NumField() {
		field := value.Field(i)
		if !field.CanInt() {
			continue
		}
		bits := field.Type().Bits()
		if least {
			field.SetInt(math.MinInt64 >> (64 - bits))
		} else {
			field.SetInt(math.MaxInt64 >> (64 - bits))
		}
	}
}

// TestConfig_ExtremesServe: with every number as large or as small as it can be, but
// those that Validate bounds, calls are served.
func TestConfig_ExtremesServe(t *testing.T) {
	for name, least := range map[string]bool{"most": false, "least": true} {
		t.Run(name, func(t *testing.T) {
			eachProtocol(t, func(t *testing.T, protocol fulmar.Protocol) {
				var server fulmar.ServerConfig
				client := fulmar.ClientConfig{Protocol: protocol}
				setNumbers(&server, least)
				setNumbers(&client, least)
				if !least {
					server.MaxMessageBytes, server.MaxSendBytes, server.MaxDepth, server.MaxWaitPercent = 1<<20, 1<<20, 64, 100
					client.MaxMessageBytes, client.MaxSendBytes, client.MaxDepth = 1<<20, 1<<20, 64
				}
				client.Target = serve(t, server, adder()).address
				api := dial(t, client)
				for range 3 {
					if sum, err := api.Add(t.Context(), 40, 2); sum != 42 || err != nil {
						t.Fatalf("Add = %d, %v", sum, err)
					}
				}
			})
		})
	}
}

func TestServerConfig_WaitPercentIsAShare(t *testing.T) {
	if err := (fulmar.ServerConfig{MaxWaitPercent: 100}).Validate(); err != nil {
		t.Error(err)
	}
	err := (fulmar.ServerConfig{MaxWaitPercent: 101}).Validate()
	if err == nil || !strings.Contains(err.Error(), "MaxWaitPercent: 101 is more than all of a call's time (at most 100)") {
		t.Errorf("101: %v", err)
	}
}
