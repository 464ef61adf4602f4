package observe

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/fulmar-rpc/fulmar/internal/limits"
)

// Metrics counts calls, for each method and side: by code, how many are in flight,
// bytes, and how long they took. One may serve any number of servers and clients.
// Make it with NewMetrics. Safe for concurrent use.
type Metrics struct {
	config MetricsConfig
	// all is copied to be changed: nearly every look at it finds what it wants.
	all atomic.Pointer[map[name]*series]

	mu sync.Mutex
	// defined and undefined count what is in all.
	defined, undefined int
}

// MetricsConfig configures Metrics. 0 is the default, negative is off.
type MetricsConfig struct {
	// MaxSeries bounds the methods of definitions that are counted apart. Each has
	// 5 KiB. Calls of further ones are counted together, under the service "(other)".
	// Default 1000 (MetricSeries).
	MaxSeries int
	// MaxUndefined is the same for names that no definition has, which peers can
	// make up: see Call.Undefined. They take no place from the others. Off counts
	// them all together. Default 100 (MetricUndefinedSeries).
	MaxUndefined int
}

// Other is the service of calls that are counted together because there are too
// many methods; their method is "(other)" or "(undefined)".
const Other = "(other)"

const undefinedMethod = "(undefined)"

// name is what is counted apart.
type name struct {
	side            Side
	undefined       bool
	service, method string
}

// series is one method at one side.
type series struct {
	calls    [Codes]atomic.Uint64
	declared atomic.Uint64
	began    atomic.Uint64
	ended    atomic.Uint64
	bytesIn  atomic.Uint64
	bytesOut atomic.Uint64
	// messagesIn and messagesOut are of streams.
	messagesIn, messagesOut atomic.Uint64
	latency                 Histogram
}

// NewMetrics returns Metrics that have counted nothing.
func NewMetrics(config MetricsConfig) *Metrics {
	m := &Metrics{config: MetricsConfig{
		// Off would be no bound, which a definition has anyway; names of peers have none.
		MaxSeries:    limits.Or(config.MaxSeries, limits.MetricSeries, int(^uint(0)>>1)),
		MaxUndefined: limits.Or(config.MaxUndefined, limits.MetricUndefinedSeries, 0),
	}}
	m.all.Store(&map[name]*series{})
	return m
}

// Observer returns what counts, for ServerConfig.Observers and
// ClientConfig.Observers.
func (m *Metrics) Observer() Observer {
	return Observer{Phases: SetOf(PhaseDone), Begin: m.begin, Event: m.event}
}

func (m *Metrics) begin(ctx context.Context, call *Call) (context.Context, any) {
	key := name{call.Side, call.Undefined, call.Service, call.Method}
	s := (*m.all.Load())[key]
	if s == nil {
		s = m.add(key)
	}
	s.began.Add(1)
	return ctx, s
}

// add returns the series of a name that had none.
func (m *Metrics) add(key name) *series {
	m.mu.Lock()
	defer m.mu.Unlock()
	old := *m.all.Load()
	if s := old[key]; s != nil {
		return s
	}
	switch {
	case key.undefined && m.undefined >= m.config.MaxUndefined:
		key.service, key.method = Other, undefinedMethod
	case key.undefined:
		m.undefined++
	case m.defined >= m.config.MaxSeries:
		key.service, key.method = Other, Other
	default:
		m.defined++
	}
	if s := old[key]; s != nil {
		return s
	}
	all := make(map[name]*series, len(old)+1)
	for k, s := range old {
		all[k] = s
	}
	s := new(series)
	all[key] = s
	m.all.Store(&all)
	return s
}

func (*Metrics) event(_ *Call, value any, event Event) {
	s := value.(*series)
	s.ended.Add(1)
	if event.Declared {
		s.declared.Add(1)
	} else {
		s.calls[min(event.Code, Codes-1)].Add(1)
	}
	s.bytesIn.Add(uint64(event.BytesIn))
	s.bytesOut.Add(uint64(event.BytesOut))
	if event.MessagesIn+event.MessagesOut > 0 {
		s.messagesIn.Add(uint64(event.MessagesIn))
		s.messagesOut.Add(uint64(event.MessagesOut))
	}
	s.latency.Record(event.At)
}

// Series is what Metrics have counted of one method at one side.
type Series struct {
	Side    Side
	Service string
	Method  string
	// Undefined is that of Call.
	Undefined bool
	// InFlight is how many calls have begun and not ended.
	InFlight int
	// Calls counts calls that have ended, by code; 0 is success. Declared are those
	// that ended in a declared exception or a business error, and are not in Calls.
	Calls    [Codes]uint64
	Declared uint64
	// BytesIn and BytesOut are what was received and sent.
	BytesIn  uint64
	BytesOut uint64
	// MessagesIn and MessagesOut are those of streams, counted when these end.
	MessagesIn  uint64
	MessagesOut uint64
	// Latency is how long calls took, whatever they ended in. On the server that is
	// from the last byte of the request to when the reply was handed to its
	// connection.
	Latency Snapshot
}

// Snapshot returns what was counted since the start, sorted by side, service and
// method. What is counted meanwhile may be in some of it only.
func (m *Metrics) Snapshot() []Series {
	all := *m.all.Load()
	list := make([]Series, 0, len(all))
	for key, s := range all {
		// Ended first: no more can have ended than have begun.
		ended := s.ended.Load()
		one := Series{
			Side: key.side, Service: key.service, Method: key.method, Undefined: key.undefined,
			InFlight: int(s.began.Load() - ended),
			Declared: s.declared.Load(),
			BytesIn:  s.bytesIn.Load(), BytesOut: s.bytesOut.Load(),
			MessagesIn: s.messagesIn.Load(), MessagesOut: s.messagesOut.Load(),
			Latency: s.latency.Snapshot(),
		}
		for i := range s.calls {
			one.Calls[i] = s.calls[i].Load()
		}
		list = append(list, one)
	}
	slices.SortFunc(list, func(a, b Series) int {
		return cmp.Or(cmp.Compare(a.Side, b.Side), cmp.Compare(a.Service, b.Service), cmp.Compare(a.Method, b.Method))
	})
	return list
}
