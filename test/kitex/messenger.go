package main

import (
	"context"
	"sync"
	"time"

	"github.com/bytedance/gopkg/cloud/metainfo"
	"github.com/cloudwego/kitex/pkg/kerrors"
	"github.com/cloudwego/kitex/pkg/rpcinfo"

	types "github.com/fulmar-rpc/fulmar/test/kitex/gen/courier"
	"github.com/fulmar-rpc/fulmar/test/kitex/gen/courier/courier"
)

// holdLimit bounds hold.
const holdLimit = 10 * time.Second

// messenger implements the service Courier as the comments of the IDL say.
type messenger struct {
	options   *options
	transport string
	mu        sync.Mutex
	released  map[string]chan struct{}
	left      map[string]*types.Received
}

var _ types.Courier = (*messenger)(nil)

func newMessenger(o *options, transport string) *messenger {
	return &messenger{options: o, transport: transport, released: map[string]chan struct{}{}, left: map[string]*types.Received{}}
}

// received returns what Kitex knows about a call beside its arguments.
func received(ctx context.Context) *types.Received {
	r := &types.Received{EveryHop: map[string]string{}, OneHop: map[string]string{}}
	for key, value := range metainfo.GetAllPersistentValues(ctx) {
		r.EveryHop[key] = value
	}
	for key, value := range metainfo.GetAllValues(ctx) {
		r.OneHop[key] = value
	}
	info := rpcinfo.GetRPCInfo(ctx)
	r.Caller = info.From().ServiceName()
	r.TimeoutMilliseconds = info.Config().RPCTimeout().Milliseconds()
	return r
}

func (m *messenger) Carry(ctx context.Context, back map[string]string) (*types.Received, error) {
	metainfo.SendBackwardValuesFromMap(ctx, back)
	return received(ctx), nil
}

func (m *messenger) Relay(ctx context.Context, address string) (*types.Received, error) {
	settings, err := m.options.clientOptions(address, m.transport)
	if err != nil {
		return nil, err
	}
	next, err := courier.NewClient(serverName, settings...)
	if err != nil {
		return nil, err
	}
	return next.Carry(ctx, map[string]string{})
}

func (m *messenger) Refuse(ctx context.Context, code int32, message string, extra, back map[string]string) (string, error) {
	metainfo.SendBackwardValuesFromMap(ctx, back)
	return "", kerrors.NewBizStatusErrorWithExtra(code, message, extra)
}

func (m *messenger) Crash(_ context.Context, reason string) (int32, error) { panic(reason) }

func (m *messenger) Hold(ctx context.Context, topic string) (bool, error) {
	select {
	case <-m.topic(topic):
		return true, nil
	case <-time.After(holdLimit):
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (m *messenger) Release(_ context.Context, topic string) error {
	close(m.topic(topic))
	return nil
}

// topic returns the channel that release closes.
func (m *messenger) topic(name string) chan struct{} {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.released[name] == nil {
		m.released[name] = make(chan struct{})
	}
	return m.released[name]
}

func (m *messenger) Leave(ctx context.Context, topic string) error {
	r := received(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left[topic] = r
	return nil
}

func (m *messenger) Collect(_ context.Context, topic string) (*types.Received, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.left[topic]; found != nil {
		return found, nil
	}
	return &types.Received{EveryHop: map[string]string{}, OneHop: map[string]string{}}, nil
}
