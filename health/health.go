// Package health answers the question whether a server can be sent calls, as gRPC's probes
// ask it: the service grpc.health.v1.Health, for Kubernetes, Envoy, grpc_health_probe and
// clients of gRPC.
//
// Source: https://github.com/grpc/grpc/blob/master/doc/health-checking.md.
package health

import (
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// ServiceName is the name of the service on the wire.
const ServiceName = "grpc.health.v1.Health"

// Status is what is said of a service, with gRPC's numbers.
type Status int32

// The statuses.
const (
	Unknown Status = iota
	Serving
	NotServing
	// ServiceUnknown is what watchers of a service are told that nobody has spoken of.
	ServiceUnknown
)

var statusNames = [...]string{"unknown", "serving", "not serving", "service unknown"}

// String returns "serving" and the like.
func (s Status) String() string {
	if s < 0 || int(s) >= len(statusNames) {
		return "no status"
	}
	return statusNames[s]
}

// Health knows what is said of the services of a server. Safe for concurrent use.
type Health struct {
	mu       sync.Mutex
	statuses map[string]Status
	// changed is closed at the next change, and replaced.
	changed chan struct{}
	stopped bool
}

// Register makes a server answer. The server itself, the service "", is Serving; of others
// nothing is known before Set.
func Register(registrar fulmar.Registrar) *Health {
	h := &Health{statuses: map[string]Status{"": Serving}, changed: make(chan struct{})}
	registrar.RegisterService(serviceDesc, service{h})
	return h
}

// service is what is registered.
type service struct{ *Health }

// ServesTools is how package fulmar knows that it should not wait for watchers when it stops,
// and that a Check or List without the name of a service means another one.
func (service) ServesTools() {}

// Set says what is to be answered for a service, by its name on the wire; "" is the server.
// It has no effect behind Stop.
func (h *Health) Set(service string, status Status) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before, known := h.statuses[service]; h.stopped || known && before == status {
		return
	}
	h.statuses[service] = status
	h.changeLocked()
}

// Stop says NotServing of everything, for good, and ends the streams of those who watch: a
// server that is about to stop does it, in ServerConfig.BeforeStop, and waits until its
// probes have noticed.
func (h *Health) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return
	}
	h.stopped = true
	for _, service := range slices.Collect(maps.Keys(h.statuses)) {
		h.statuses[service] = NotServing
	}
	h.changeLocked()
}

func (h *Health) changeLocked() {
	close(h.changed)
	h.changed = make(chan struct{})
}

// look returns what is known of a service, and what is closed when that may be otherwise;
// nil if it will not be.
func (h *Health) look(service string) (status Status, known bool, changed <-chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	status, known = h.statuses[service]
	if h.stopped {
		return status, known, nil
	}
	return status, known, h.changed
}

// check answers once.
func (h *Health) check(_ context.Context, asked *request) (*response, error) {
	status, known, _ := h.look(asked.service)
	if !known {
		return nil, fulmar.Errorf(fulmar.NotFound, "nothing is known of the service %.200q", asked.service)
	}
	return &response{status: status}, nil
}

// list answers for all services.
func (h *Health) list() (*statusList, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if known := len(h.statuses); known > limits.HealthListServices {
		return nil, fulmar.Errorf(fulmar.ResourceExhausted, "%d services are known (limit %d)", known, limits.HealthListServices)
	}
	return &statusList{maps.Clone(h.statuses)}, nil
}

// watch answers at each change, until the caller has enough or nothing will change any more.
// A client of grpc-go takes the error for a server that does not serve, and watches again: at
// once if it was told a status, else later and later. So a watch that begins behind Stop
// tells none.
func (h *Health) watch(asked *request, stream fulmar.ServerStreamingServer[response]) error {
	told := Status(-1)
	for {
		status, known, changed := h.look(asked.service)
		if !known {
			status = ServiceUnknown
		}
		ends := changed == nil
		if late := ends && told < 0; status != told && !late {
			if err := stream.Send(&response{status: status}); err != nil {
				return err
			}
			told = status
		}
		if ends {
			return fulmar.NewError(fulmar.Unavailable, "the server is about to stop")
		}
		select {
		case <-changed:
		case <-stream.Context().Done():
			return stream.Context().Err()
		}
	}
}

var serviceDesc = &fulmar.ServiceDesc{
	Name: ServiceName,
	Methods: []*fulmar.MethodDesc{
		{
			Service: ServiceName, Name: "Check", Codec: codec{},
			NewRequest: func() any { return new(request) },
			Invoke: func(ctx context.Context, implementation, asked any) (any, error) {
				return implementation.(service).check(ctx, asked.(*request))
			},
		},
		{
			Service: ServiceName, Name: "List", Codec: codec{},
			NewRequest: func() any { return new(listRequest) },
			Invoke: func(_ context.Context, implementation, _ any) (any, error) {
				return implementation.(service).list()
			},
		},
		{
			Service: ServiceName, Name: "Watch", Codec: codec{}, ServerStreams: true,
			InvokeStream: fulmar.ServeServerStream(func(implementation any, asked *request, stream fulmar.ServerStreamingServer[response]) error {
				return implementation.(service).watch(asked, stream)
			}),
		},
	},
}
