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

// holdLimit bounds hold and held.
const holdLimit = 10 * time.Second

// topic has the channels that hold and release close.
type topic struct{ held, released chan struct{} }

// messenger implements the service Courier as the comments of the IDL say.
type messenger struct {
	options   *options
	transport string
	mu        sync.Mutex
	topics    map[string]topic
	left      map[string]*types.Received
}

var _ types.Courier = (*messenger)(nil)

func newMessenger(o *options, transport string) *messenger {
	return &messenger{options: o, transport: transport, topics: map[string]topic{}, left: map[string]*types.Received{}}
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

func (m *messenger) Caller(ctx context.Context) (string, error) {
	return rpcinfo.GetRPCInfo(ctx).From().ServiceName(), nil
}

func (m *messenger) Remaining(ctx context.Context) (int64, error) {
	return rpcinfo.GetRPCInfo(ctx).Config().RPCTimeout().Milliseconds(), nil
}

func (m *messenger) Hold(ctx context.Context, name string, milliseconds int32) (bool, error) {
	t := m.topic(name)
	close(t.held)
	released, err := wait(ctx, t.released)
	if released {
		<-time.After(time.Duration(milliseconds) * time.Millisecond)
	}
	return released, err
}

func (m *messenger) Held(ctx context.Context, name string) (bool, error) {
	return wait(ctx, m.topic(name).held)
}

func (m *messenger) Release(_ context.Context, name string) error {
	close(m.topic(name).released)
	return nil
}

// wait reports whether the channel is closed before holdLimit has passed.
func wait(ctx context.Context, closed <-chan struct{}) (bool, error) {
	select {
	case <-closed:
		return true, nil
	case <-time.After(holdLimit):
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

func (m *messenger) topic(name string) topic {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.topics[name]; !known {
		m.topics[name] = topic{held: make(chan struct{}), released: make(chan struct{})}
	}
	return m.topics[name]
}

func (m *messenger) Leave(ctx context.Context, name string) error {
	r := received(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left[name] = r
	return nil
}

func (m *messenger) Collect(_ context.Context, name string) (*types.Received, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.left[name]; found != nil {
		return found, nil
	}
	return &types.Received{EveryHop: map[string]string{}, OneHop: map[string]string{}}, nil
}
