package calls_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/courier"
)

// holdLimit bounds hold and held.
const holdLimit = 10 * time.Second

// messenger implements the service Courier as the comments of the IDL say.
type messenger struct {
	mu     sync.Mutex
	topics map[string]topic
	left   map[string]*courier.Received
}

// topic has the channels that hold and release close.
type topic struct{ held, released chan struct{} }

var _ courier.CourierServer = (*messenger)(nil)

func newMessenger() *messenger {
	return &messenger{topics: map[string]topic{}, left: map[string]*courier.Received{}}
}

// arrived returns what came with a call beside its arguments.
func arrived(ctx context.Context) (*courier.Received, error) {
	call, ok := fulmar.CallFrom(ctx)
	if !ok {
		return nil, errors.New("the handler is not told about the call")
	}
	return &courier.Received{
		EveryHop: maps.Collect(call.Metadata().AllPersistent()),
		OneHop:   maps.Collect(call.Metadata().AllTransient()),
	}, nil
}

func sendBack(ctx context.Context, back map[string]string) error {
	var failures []error
	for key, value := range back {
		failures = append(failures, fulmar.SetReplyMetadata(ctx, key, value))
	}
	return errors.Join(failures...)
}

func (m *messenger) Carry(ctx context.Context, back map[string]string) (*courier.Received, error) {
	if err := sendBack(ctx, back); err != nil {
		return nil, err
	}
	return arrived(ctx)
}

// Relay calls on with the protocol that it was called with.
func (m *messenger) Relay(ctx context.Context, address string) (*courier.Received, error) {
	call, _ := fulmar.CallFrom(ctx)
	client, err := fulmar.NewClient(fulmar.ClientConfig{Target: address, Service: serverName, Caller: clientName, Protocol: call.Protocol()})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	return courier.NewCourierClient(client).Carry(ctx, map[string]string{})
}

func (m *messenger) Refuse(ctx context.Context, code int32, message string, extra, back map[string]string) (string, error) {
	if err := sendBack(ctx, back); err != nil {
		return "", err
	}
	return "", fulmar.NewBusinessError(code, message, extra)
}

func (m *messenger) Crash(_ context.Context, reason string) (int32, error) { panic(reason) }

func (m *messenger) Caller(ctx context.Context) (string, error) {
	call, _ := fulmar.CallFrom(ctx)
	return call.CallerService(), nil
}

func (m *messenger) Remaining(ctx context.Context) (int64, error) {
	call, _ := fulmar.CallFrom(ctx)
	deadline, ok := call.Deadline()
	if !ok {
		return 0, nil
	}
	return time.Until(deadline).Milliseconds(), nil
}

func (m *messenger) Hold(ctx context.Context, name string, milliseconds int32) (bool, error) {
	t := m.topic(name)
	close(t.held)
	released, err := wait(ctx, t.released)
	lingering, cancel := context.WithTimeout(ctx, time.Duration(milliseconds)*time.Millisecond)
	defer cancel()
	<-lingering.Done()
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
	limited, cancel := context.WithTimeout(ctx, holdLimit)
	defer cancel()
	select {
	case <-closed:
		return true, nil
	case <-limited.Done():
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
	received, err := arrived(ctx)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left[name] = received
	return err
}

func (m *messenger) Collect(_ context.Context, name string) (*courier.Received, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if found := m.left[name]; found != nil {
		return found, nil
	}
	return &courier.Received{}, nil
}
