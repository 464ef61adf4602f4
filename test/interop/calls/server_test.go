package calls_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/base"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everything"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/everythingapache"
	"github.com/fulmar-rpc/fulmar/thrift"
)

// rules implements the services as the comments of the IDL files say. It is
// python/peers/rules.py once more, in Go.
type rules struct {
	mu    sync.Mutex
	notes map[string][]string
}

var (
	_ everything.EverythingServer   = (*rules)(nil)
	_ everythingapache.ApacheServer = (*rules)(nil)
)

var errUndeclared = errors.New("a failure that no method declares")

func newRules() *rules { return &rules{notes: map[string][]string{}} }

func (r *rules) Ping(context.Context) error { return nil }

func (r *rules) Describe(context.Context) (string, error) { return "base of everything", nil }

func (r *rules) Stamp(_ context.Context, moment base.Moment, level base.Level) (base.Moment, error) {
	var stamp base.Moment
	_, err := fmt.Sscan(fmt.Sprintf("%d%d", moment, int32(level)), &stamp)
	return stamp, err
}

func (r *rules) Invert(_ context.Context, value bool) (bool, error) { return !value, nil }

func (r *rules) FlipI8(_ context.Context, value int8) (int8, error) { return ^value, nil }

func (r *rules) FlipI16(_ context.Context, value int16) (int16, error) { return ^value, nil }

func (r *rules) FlipI32(_ context.Context, value int32) (int32, error) { return ^value, nil }

func (r *rules) FlipI64(_ context.Context, value int64) (int64, error) { return ^value, nil }

func (r *rules) Negate(_ context.Context, value float64) (float64, error) { return -value, nil }

func (r *rules) RepeatText(_ context.Context, text string, count int32) (string, error) {
	return strings.Repeat(text, int(count)), nil
}

func (r *rules) FlipBytes(_ context.Context, value []byte) ([]byte, error) {
	flipped := make([]byte, len(value))
	for i, b := range value {
		flipped[i] = ^b
	}
	return flipped, nil
}

func (r *rules) NextColor(_ context.Context, color everything.Color) (everything.Color, error) {
	return color + 1, nil
}

func (r *rules) EchoScalars(_ context.Context, value *everything.Scalars) (*everything.Scalars, error) {
	return value, nil
}

func (r *rules) EchoContainers(_ context.Context, value *everything.Containers) (*everything.Containers, error) {
	return value, nil
}

func (r *rules) EchoDefaults(_ context.Context, value *everything.Defaults) (*everything.Defaults, error) {
	return value, nil
}

func (r *rules) EchoDrawing(_ context.Context, value *everything.Drawing) (*everything.Drawing, error) {
	return value, nil
}

func (r *rules) EchoTree(_ context.Context, value *everything.Tree) (*everything.Tree, error) {
	return value, nil
}

func (r *rules) EchoNothing(_ context.Context, value *everything.Nothing) (*everything.Nothing, error) {
	return value, nil
}

func (r *rules) EchoWords(_ context.Context, value everything.Words) (everything.Words, error) {
	return value, nil
}

func (r *rules) EchoNumbers(_ context.Context, value []int64) ([]int64, error) { return value, nil }

func (r *rules) FreshDefaults(context.Context) (*everything.Defaults, error) {
	return everything.NewDefaults(), nil
}

func (r *rules) Scale(_ context.Context, shape *everything.Shape, factor float64) (*everything.Shape, error) {
	switch {
	case shape.Circle != nil:
		shape.Circle.Radius *= factor
	case shape.Square != nil:
		shape.Square.Side *= factor
	}
	return shape, nil
}

func (r *rules) SumTree(_ context.Context, tree *everything.Tree) (int64, error) {
	return sum(tree), nil
}

func sum(tree *everything.Tree) int64 {
	if tree == nil {
		return 0
	}
	total := int64(tree.Value) + sum(tree.Rest)
	for i := range tree.Children {
		total += sum(&tree.Children[i])
	}
	for _, branch := range tree.Named {
		total += sum(branch)
	}
	return total
}

func (r *rules) CountWords(_ context.Context, words everything.Words) (everything.Counts, error) {
	counts := everything.Counts{}
	for _, word := range words {
		counts[word]++
	}
	return counts, nil
}

func (r *rules) UniquePoints(_ context.Context, points []base.Point) ([]base.Point, error) {
	var unique []base.Point
	seen := map[base.Point]bool{}
	for _, point := range points {
		if !seen[point] {
			seen[point] = true
			unique = append(unique, point)
		}
	}
	return unique, nil
}

func (r *rules) LabelPoints(_ context.Context, points []base.Point) (map[base.Point]string, error) {
	labels := map[base.Point]string{}
	for _, point := range points {
		labels[point] = fmt.Sprintf("%d:%d", point.X, point.Y)
	}
	return labels, nil
}

func (r *rules) Measure(_ context.Context, blobs [][]byte) (map[string]int32, error) {
	lengths := map[string]int32{}
	for _, blob := range blobs {
		lengths[string(blob)] = int32(len(blob))
	}
	return lengths, nil
}

func (r *rules) Grid(_ context.Context, rows, columns int32) ([][]int32, error) {
	grid := make([][]int32, rows)
	for row := range grid {
		for column := range columns {
			grid[row] = append(grid[row], int32(row)*columns+column)
		}
	}
	return grid, nil
}

func (r *rules) JoinArguments(_ context.Context, fifth string, first int32, third []bool) (string, error) {
	words := []string{fmt.Sprint(first)}
	for _, yes := range third {
		words = append(words, map[bool]string{true: "yes", false: "no"}[yes])
	}
	return strings.Join(append(words, fifth), "/"), nil
}

func (r *rules) DescribeStrict(_ context.Context, value *everything.Strict) (string, error) {
	return fmt.Sprintf("%d:%s", value.ID, value.Name), nil
}

func (r *rules) Fail(_ context.Context, failure everything.Failure, subject string) (string, error) {
	return strings.ToUpper(subject) + "!", fail(failure, subject)
}

func (r *rules) FailVoid(_ context.Context, failure everything.Failure, subject string) error {
	return fail(failure, subject)
}

func (r *rules) FailUndeclared(_ context.Context, failure everything.Failure) (int32, error) {
	return 0, fail(failure, "undeclared")
}

func fail(failure everything.Failure, subject string) error {
	switch failure {
	case everything.Failure_NOT_FOUND:
		return &base.NotFound{What: subject}
	case everything.Failure_REJECTED:
		return fmt.Errorf("wrapped: %w", &everything.Rejected{Reason: subject, Code: 409})
	case everything.Failure_UNDECLARED:
		return errUndeclared
	}
	return nil
}

func (r *rules) Note(_ context.Context, topic, text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes[topic] = append(r.notes[topic], text)
	return nil
}

func (r *rules) FailQuietly(context.Context, string) error { return errUndeclared }

func (r *rules) Notes(_ context.Context, topic string) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.notes[topic]...), nil
}

func (r *rules) Pause(ctx context.Context, milliseconds int32) (int32, error) {
	select {
	case <-time.After(time.Duration(milliseconds) * time.Millisecond):
		return milliseconds, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (r *rules) Misbehave(_ context.Context, kind everything.Misbehaviour) (int32, error) {
	if kind != everything.Misbehaviour_NONE {
		return 0, fulmar.NewError(fulmar.Unimplemented, "this server always behaves")
	}
	return 1, nil
}

func (r *rules) FlipUUID(_ context.Context, value thrift.UUID) (thrift.UUID, error) {
	for i, b := range value {
		value[i] = ^b
	}
	return value, nil
}

func (r *rules) NilUUID(context.Context) (thrift.UUID, error) { return thrift.UUID{}, nil }

func (r *rules) EchoIdentified(_ context.Context, value *everythingapache.Identified) (*everythingapache.Identified, error) {
	return value, nil
}

func (r *rules) EchoContainerKeys(_ context.Context, value *everythingapache.ContainerKeys) (*everythingapache.ContainerKeys, error) {
	return value, nil
}
