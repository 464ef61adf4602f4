package main

import (
	"context"
	"encoding/json"
	"os"
	"time"

	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/connpool"
	"github.com/cloudwego/kitex/pkg/rpcinfo"
	"github.com/cloudwego/kitex/pkg/transmeta"
	kitextransport "github.com/cloudwego/kitex/transport"

	service "github.com/fulmar-rpc/fulmar/test/kitex/gen/orders/orders"
)

// callTimeout bounds a call. Behind a TTHeader, Kitex tells the server.
const callTimeout = 10 * time.Second

// call makes all steps over a transport and prints a line for each.
func call(f *file, address, transport string) error {
	api, err := service.NewClient(serverName, clientOptions(address, transport)...)
	if err != nil {
		return err
	}
	differs := false
	visit := &visit{api: api, file: f}
	for _, step := range visit.steps(transport) {
		start := time.Now()
		result, err := step.run(context.Background())
		if err != nil {
			differs, result = true, err.Error()
		}
		line := map[string]any{
			"runtime": "Kitex", "what": step.what, "protocol": transport, "result": result, "ok": err == nil,
			"milliseconds": float64(time.Since(start).Microseconds()) / 1000,
		}
		if err := json.NewEncoder(os.Stdout).Encode(line); err != nil {
			return err
		}
	}
	if differs {
		return errDiffers
	}
	return nil
}

func clientOptions(address, transport string) []client.Option {
	settings := []client.Option{
		client.WithHostPorts(address),
		client.WithClientBasicInfo(&rpcinfo.EndpointBasicInfo{ServiceName: clientName}),
		client.WithRPCTimeout(callTimeout),
		client.WithConnectTimeout(callTimeout),
		// Without it there are no business errors.
		client.WithMetaHandler(transmeta.ClientTTHeaderHandler),
	}
	switch transport {
	case multiplexed:
		return append(settings, client.WithMuxConnection(1))
	case ttheader:
		// Kitex adds protocols up, and starts with framed. This takes it off.
		settings = append(settings, client.WithTransportProtocol(kitextransport.PurePayload), client.WithTransportProtocol(kitextransport.TTHeader))
	case ttheaderFramed:
		settings = append(settings, client.WithTransportProtocol(kitextransport.TTHeader))
	}
	return append(settings, client.WithLongConnection(connpool.IdleConfig{MaxIdlePerAddress: 1, MaxIdleGlobal: 1, MaxIdleTimeout: time.Minute}))
}
