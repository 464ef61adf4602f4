package guide_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/cluster"
	"github.com/fulmar-rpc/fulmar/internal/testservice"
	"github.com/fulmar-rpc/fulmar/policy"
)

// jsonBlocks returns the blocks of a page that are marked as JSON.
func jsonBlocks(t *testing.T, page string) []string {
	t.Helper()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var blocks []string
	for i, part := range strings.Split(string(content), "```json\n") {
		if block, _, ok := strings.Cut(part, "```"); ok && i > 0 {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// TestPolicies_DocumentsAreValid: all JSON in these pages are policies that hold.
func TestPolicies_DocumentsAreValid(t *testing.T) {
	for _, page := range []string{"balancing.md", "policies.md", "limiting.md"} {
		blocks := jsonBlocks(t, page)
		if len(blocks) == 0 {
			t.Errorf("%s: no JSON", page)
		}
		for _, block := range blocks {
			document, err := policy.ParseJSON([]byte(block))
			if err != nil {
				t.Errorf("%s: %v in\n%s", page, err, block)
			}
			if reflect.DeepEqual(document, policy.Document{}) {
				t.Errorf("%s: nothing is set by\n%s", page, block)
			}
		}
	}
}

// same checks that the first JSON of a page says what its Go says.
func same(t *testing.T, page string, document policy.Document) {
	t.Helper()
	if err := document.Validate(); err != nil {
		t.Errorf("%s: the policy in Go: %v", page, err)
	}
	if read, err := policy.ParseJSON([]byte(jsonBlocks(t, page)[0])); err != nil || !reflect.DeepEqual(read, document) {
		t.Errorf("%s: JSON says %+v (%v), Go %+v", page, read, err, document)
	}
}

func TestBalancing_GoAndJSONAgree(t *testing.T) {
	document := policy.Document{Client: policy.Client{
		Balancing: cluster.Balancing{
			Method:    cluster.LeastLoaded,
			Zone:      "eu-west-1a",
			SlowStart: 30 * time.Second,
		},
		Ejection: cluster.Ejection{FailurePercent: 50, MaxEjectedPercent: 30},
	}}
	same(t, "balancing.md", document)
}

func TestPolicies_GoAndJSONAgree(t *testing.T) {
	document := policy.Document{Client: policy.Client{
		Method: policy.Method{
			Timeout: 2 * time.Second, // of a call with all its attempts
			Retry:   policy.Retry{Attempts: 3},
		},
		Methods: map[string]policy.Method{
			"Catalog":       {Retry: policy.Retry{Idempotent: true}},
			"Catalog.find":  {Hedge: policy.Hedge{After: 50 * time.Millisecond}},
			"Orders.place":  {Retry: policy.Retry{Attempts: -1}},
			"Orders.report": {Timeout: 30 * time.Second, Breaker: policy.Breaker{FailurePercent: 50}},
		},
		RetryBudget: policy.RetryBudget{Percent: 10},
	}}
	same(t, "policies.md", document)
}

// TestPolicies_QuotesErrors: what the guide says of a wrong document is what is said.
func TestPolicies_QuotesErrors(t *testing.T) {
	guide, err := os.ReadFile("policies.md")
	if err != nil {
		t.Fatal(err)
	}
	_, err = policy.ParseJSON([]byte(`{"client": {"timeout": 2, "retry": {"backof_min": "1s"}, "methods": {"Orders.place": {"retry": {"codes": ["unavailible"]}}}}}`))
	if err == nil {
		t.Fatal("a wrong document is taken")
	}
	for line := range strings.Lines(err.Error()) {
		if !strings.Contains(string(guide), "\n"+strings.TrimSpace(line)+"\n") {
			t.Errorf("the guide does not quote %q", line)
		}
	}
	if lines := strings.Count(err.Error(), "\n") + 1; lines != 3 {
		t.Errorf("%d problems", lines)
	}
}

type changedDocument struct {
	content []byte
	version string
}

// TestPolicies_Source: the source of the guide delivers.
func TestPolicies_Source(t *testing.T) {
	documents := make(chan changedDocument)
	config := fulmar.ClientConfig{
		Target: "static:///10.0.0.1:8888,10.0.0.2:8888",
		PolicySource: func(ctx context.Context, deliver func(document []byte, version string)) error {
			for {
				select {
				case changed := <-documents: // a watch of etcd, say
					deliver(changed.content, changed.version)
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		},
	}
	log := make(lines, 100)
	config.Logger = slog.New(slog.NewTextHandler(log, nil))
	client, err := fulmar.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	documents <- changedDocument{[]byte(`{"client": {"timeout": "7s"}}`), "17"}
	if line := <-log; !strings.Contains(line, "policy changed") || !strings.Contains(line, "version 17") {
		t.Errorf("the log says %q", line)
	}
	if held, _, _ := client.Policy(); held.Timeout != 7*time.Second {
		t.Errorf("%+v holds", held)
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
}

// lines are those of a log.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// serveGoverned serves until the test ends.
func serveGoverned(t *testing.T, config fulmar.ServerConfig, stub *testservice.Stub) (address string) {
	t.Helper()
	_, address = startGoverned(t, config, stub)
	return address
}

// startGoverned is serveGoverned for tests that need the server.
func startGoverned(t *testing.T, config fulmar.ServerConfig, stub *testservice.Stub) (server *fulmar.Server, address string) {
	t.Helper()
	config.Address, config.Logger = "127.0.0.1:0", slog.New(slog.DiscardHandler)
	server, err := fulmar.NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	testservice.RegisterEchoServer(server, stub)
	listening, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return server, listening.String()
}

func dialGoverned(t *testing.T, config fulmar.ClientConfig) (*fulmar.Client, testservice.EchoClient) {
	t.Helper()
	client, err := fulmar.NewClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client, testservice.NewEchoClient(client)
}

func TestPolicies_RetryIf(t *testing.T) {
	calls := int32(0)
	config := fulmar.ClientConfig{
		Target: serveGoverned(t, fulmar.ServerConfig{}, &testservice.Stub{OnAdd: func(context.Context, int32, int32) (int32, error) {
			calls++
			return calls - 3, nil
		}}),
		Policy: policy.Client{Method: policy.Method{Retry: policy.Retry{Attempts: 5, Idempotent: true, BackoffMin: -1}}},
	}
	config.RetryIf = func(call fulmar.Unary, err error) bool {
		if err != nil {
			return fulmar.CodeOf(err) == fulmar.Unavailable
		}
		result, ok := call.Reply().(*testservice.EchoAddResult)
		return ok && result.Success.Or(0) < 0 // "not ready yet", in this API
	}
	_, api := dialGoverned(t, config)
	if sum, err := api.Add(t.Context(), 1, 2); sum != 0 || err != nil || calls != 3 {
		t.Errorf("%d, %v after %d attempts", sum, err, calls)
	}
}

// answers keeps what Echo.add answered, and answers with it when a call fails.
type answers struct {
	mu    sync.Mutex
	known map[testservice.EchoAddArgs]testservice.EchoAddResult
}

// answersMax bounds what is kept; a real cache would also forget.
const answersMax = 1000

func (a *answers) fallback(ctx context.Context, call fulmar.Unary, next fulmar.UnaryNext) error {
	err := next(ctx, call)
	request, requestErr := call.Request()
	sum, isAdd := request.(*testservice.EchoAddArgs)
	reply, replies := call.Reply().(*testservice.EchoAddResult)
	if requestErr != nil || !isAdd || !replies {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil && len(a.known) < answersMax {
		a.known[*sum] = *reply
	}
	switch fulmar.CodeOf(err) {
	case fulmar.Unavailable, fulmar.DeadlineExceeded, fulmar.ResourceExhausted:
		if answer, known := a.known[*sum]; known {
			*reply = answer
			return nil
		}
	}
	return err
}

func TestPolicies_Fallback(t *testing.T) {
	down := false
	config := fulmar.ClientConfig{Target: serveGoverned(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnAdd: func(_ context.Context, left, right int32) (int32, error) {
			if down {
				return 0, fulmar.NewError(fulmar.Unavailable, "not today")
			}
			return left + right, nil
		},
	})}
	kept := &answers{known: map[testservice.EchoAddArgs]testservice.EchoAddResult{}}
	config.Interceptors = []fulmar.UnaryInterceptor{
		fulmar.OnlyFor(kept.fallback, testservice.EchoAddFullMethodName),
	}
	_, api := dialGoverned(t, config)
	for range 2 {
		if sum, err := api.Add(t.Context(), 1, 2); sum != 3 || err != nil {
			t.Errorf("down: %v: %d, %v", down, sum, err)
		}
		down = true
	}
	if _, err := api.Add(t.Context(), 3, 4); fulmar.CodeOf(err) != fulmar.Unavailable {
		t.Errorf("what was never answered: %v", err)
	}
}

// TestPolicies_Explain prints the explanation that the guide quotes, but for the times: a
// call whose first instance refuses the connection.
func TestPolicies_Explain(t *testing.T) {
	guide, err := os.ReadFile("policies.md")
	if err != nil {
		t.Fatal(err)
	}
	address := serveGoverned(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnAdd: func(_ context.Context, left, right int32) (int32, error) { return left + right, nil },
	})
	var sampled []string
	config := fulmar.ClientConfig{
		Target: "static:///10.0.0.1:8888,10.0.0.2:8888",
		Dial: func(ctx context.Context, network, to string) (net.Conn, error) {
			if to == "10.0.0.1:8888" {
				return nil, &net.OpError{Op: "dial", Net: network, Err: errors.New(syscall.ECONNREFUSED.Error())}
			}
			var dialer net.Dialer
			return dialer.DialContext(ctx, "tcp", address)
		},
		ExplainEvery:  1,
		OnExplanation: func(e *policy.Explanation) { sampled = append(sampled, e.String()) },
	}
	text := ""
	for range 100 { // Which is tried first is chance.
		client, err := fulmar.NewClient(config)
		if err != nil {
			t.Fatal(err)
		}
		api := testservice.NewEchoClient(client)
		explained := explain(t.Context(), t, api)
		if _, err := api.Add(t.Context(), 1, 2); err != nil {
			t.Error(err)
		}
		if err := client.Close(); err != nil {
			t.Error(err)
		}
		if explained.Len() == 2 {
			text = explained.String()
			break
		}
	}
	round := func(text string) string {
		return regexp.MustCompile(`[0-9.]+(µs|ms|ns|s)\b`).ReplaceAllString(text, "T")
	}
	if !strings.Contains(round(string(guide)), round(text)) || text == "" {
		t.Errorf("the guide does not have\n%s", text)
	}
	if len(sampled) == 0 || !strings.Contains(sampled[0], "Echo.add at") {
		t.Errorf("sampled: %q", sampled)
	}
}

func explain(ctx context.Context, t *testing.T, api testservice.EchoClient) policy.Explanation {
	t.Helper()
	var explained policy.Explanation
	_, err := api.Add(ctx, 1, 2, fulmar.Explain(&explained))
	fmt.Println(&explained)
	if err != nil {
		t.Error(err)
	}
	return explained
}

func TestPolicies_Sampling(t *testing.T) {
	logger := slog.New(slog.DiscardHandler)
	config := fulmar.ClientConfig{Target: "127.0.0.1:1"}
	config.ExplainEvery = 500
	config.OnExplanation = func(e *policy.Explanation) {
		if e.Len() > 1 || e.Refused != policy.NotRefused {
			logger.Info("explained", "call", e.String())
		}
	}
	if err := config.Validate(); err != nil {
		t.Error(err)
	}
}

func TestLimiting_GoAndJSONAgree(t *testing.T) {
	document := policy.Document{Server: policy.Server{
		Limit:       policy.Limit{PerSecond: 5000, Running: 500},
		CallerLimit: policy.Limit{PerSecond: 500, Burst: 100},
		Methods: map[string]policy.Limit{
			"Reports":       {Running: 60},
			"Reports.build": {Running: 4},
		},
	}}
	same(t, "limiting.md", document)
}

// TestLimiting_QuotesErrors: what callers of each protocol get is what the guide says.
func TestLimiting_QuotesErrors(t *testing.T) {
	guide, err := os.ReadFile("limiting.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, protocol := range []fulmar.Protocol{fulmar.TTHeader, fulmar.GRPC, fulmar.Framed, fulmar.Bare} {
		_, api := dialGoverned(t, fulmar.ClientConfig{
			Protocol: protocol,
			Target: serveGoverned(t, fulmar.ServerConfig{Policy: policy.Server{Limit: policy.Limit{PerSecond: 1, Burst: 1}}}, &testservice.Stub{
				OnNothing: func(context.Context) error { return nil },
			}),
		})
		err := errors.Join(api.Nothing(t.Context()), api.Nothing(t.Context()))
		var refused *fulmar.Error
		if !errors.As(err, &refused) {
			t.Fatalf("%v: %v", protocol, err)
		}
		row := fmt.Sprintf("| `%v`, %v |", refused.Code(), refused.Executed())
		row = strings.ReplaceAll(row, "resource exhausted", "resource_exhausted")
		if !strings.Contains(string(guide), row) {
			t.Errorf("%v: the guide does not have a row with %q", protocol, row)
		}
		if text := "limit of the server: 1 calls in a second (the next one in "; !strings.Contains(err.Error(), text) || !strings.Contains(string(guide), text) {
			t.Errorf("%v: the guide does not quote %v", protocol, err)
		}
	}
}

// tryOut has a policy on trial while calls are made.
func tryOut(client *fulmar.Client, logger *slog.Logger, calls func()) error {
	trial, err := policy.NewTrial(policy.Client{
		Method:        policy.Method{Retry: policy.Retry{Idempotent: true, Attempts: 2}},
		TargetBreaker: policy.Breaker{FailurePercent: 50, MinCalls: 10},
	}, time.Now())
	if err != nil {
		return err
	}
	client.Try(trial)
	calls()
	logger.Info("trial", "found", trial.Show().String())
	client.Try(nil)
	return nil
}

// tryLimits has limits on trial while calls come.
func tryLimits(server *fulmar.Server, logger *slog.Logger, calls func()) error {
	trial, err := policy.NewServerTrial(policy.Server{
		CallerLimit: policy.Limit{Running: 35},
	}, time.Now())
	if err != nil {
		return err
	}
	server.Try(trial)
	calls()
	logger.Info("trial", "found", trial.Show(time.Now()).String())
	server.Try(nil)
	return nil
}

func TestLimiting_Trial(t *testing.T) {
	guide, err := os.ReadFile("limiting.md")
	if err != nil {
		t.Fatal(err)
	}
	const calls = 50
	var running sync.WaitGroup
	running.Add(calls)
	server, address := startGoverned(t, fulmar.ServerConfig{}, &testservice.Stub{OnNothing: func(context.Context) error {
		running.Done()
		running.Wait() // all of them run at once
		return nil
	}})
	_, api := dialGoverned(t, fulmar.ClientConfig{Target: address, Timeout: time.Minute})
	log := make(lines, 1)
	err = tryLimits(server, slog.New(slog.NewTextHandler(log, nil)), func() {
		var all sync.WaitGroup
		for range calls {
			all.Go(func() {
				if err := api.Nothing(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
	if err != nil {
		t.Fatal(err)
	}
	_, found, _ := strings.Cut(<-log, `found="`)
	found, _, _ = strings.Cut(found, ":")
	if !strings.Contains(string(guide), "`"+found+":") {
		t.Errorf("the guide does not quote %q", found)
	}
}

func TestPolicies_Trial(t *testing.T) {
	guide, err := os.ReadFile("policies.md")
	if err != nil {
		t.Fatal(err)
	}
	client, api := dialGoverned(t, fulmar.ClientConfig{Target: serveGoverned(t, fulmar.ServerConfig{}, &testservice.Stub{
		OnAdd: func(context.Context, int32, int32) (int32, error) {
			return 0, fulmar.NewError(fulmar.Unavailable, "no")
		},
	})})
	log := make(lines, 1)
	err = tryOut(client, slog.New(slog.NewTextHandler(log, nil)), func() {
		for range 30 {
			_, _ = api.Add(t.Context(), 1, 2)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, found, _ := strings.Cut(<-log, `found="`); !strings.Contains(string(guide), "`"+strings.TrimSuffix(strings.TrimSpace(found), `"`)+"`") {
		t.Errorf("the guide does not quote %q", found)
	}
}
