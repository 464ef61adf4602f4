// Package rules implements the service Everything as the comments of the IDL
// say, with the Go types that thriftgo generates. The peer on Apache Thrift has
// the same types and takes a copy when its code is generated.
package rules

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/fulmar-rpc/fulmar/test/kitex/gen/base"
	types "github.com/fulmar-rpc/fulmar/test/kitex/gen/everything"
)

// Rules is the service. It is safe for concurrent use.
type Rules struct {
	mu    sync.Mutex
	notes map[string][]string
}

var _ types.Everything = (*Rules)(nil)

var errUndeclared = errors.New("a failure that no method declares")

// New returns a service that has no notes.
func New() *Rules { return &Rules{notes: map[string][]string{}} }

func (r *Rules) Ping(context.Context) error { return nil }

func (r *Rules) Describe(context.Context) (string, error) { return "base of everything", nil }

func (r *Rules) Stamp(_ context.Context, moment base.Moment, level base.Level) (base.Moment, error) {
	var stamp base.Moment
	// %d, because Level has a String that prints its name.
	_, err := fmt.Sscan(fmt.Sprintf("%d%d", moment, level), &stamp)
	return stamp, err
}

func (r *Rules) Invert(_ context.Context, value bool) (bool, error) { return !value, nil }

func (r *Rules) FlipI8(_ context.Context, value int8) (int8, error) { return ^value, nil }

func (r *Rules) FlipI16(_ context.Context, value int16) (int16, error) { return ^value, nil }

func (r *Rules) FlipI32(_ context.Context, value int32) (int32, error) { return ^value, nil }

func (r *Rules) FlipI64(_ context.Context, value int64) (int64, error) { return ^value, nil }

func (r *Rules) Negate(_ context.Context, value float64) (float64, error) { return -value, nil }

func (r *Rules) RepeatText(_ context.Context, text string, count int32) (string, error) {
	return strings.Repeat(text, int(count)), nil
}

func (r *Rules) FlipBytes(_ context.Context, value []byte) ([]byte, error) {
	flipped := make([]byte, len(value))
	for i, b := range value {
		flipped[i] = ^b
	}
	return flipped, nil
}

func (r *Rules) NextColor(_ context.Context, color types.Color) (types.Color, error) {
	return color + 1, nil
}

func (r *Rules) EchoScalars(_ context.Context, value *types.Scalars) (*types.Scalars, error) {
	return value, nil
}

func (r *Rules) EchoContainers(_ context.Context, value *types.Containers) (*types.Containers, error) {
	return value, nil
}

func (r *Rules) EchoDefaults(_ context.Context, value *types.Defaults) (*types.Defaults, error) {
	return value, nil
}

func (r *Rules) EchoDrawing(_ context.Context, value *types.Drawing) (*types.Drawing, error) {
	return value, nil
}

func (r *Rules) EchoTree(_ context.Context, value *types.Tree) (*types.Tree, error) {
	return value, nil
}

func (r *Rules) EchoNothing(_ context.Context, value *types.Nothing) (*types.Nothing, error) {
	return value, nil
}

func (r *Rules) EchoWords(_ context.Context, value types.Words) (types.Words, error) {
	return value, nil
}

func (r *Rules) EchoNumbers(_ context.Context, value []int64) ([]int64, error) { return value, nil }

func (r *Rules) FreshDefaults(context.Context) (*types.Defaults, error) {
	return types.NewDefaults(), nil
}

func (r *Rules) Scale(_ context.Context, shape *types.Shape, factor float64) (*types.Shape, error) {
	switch {
	case shape.Circle != nil:
		shape.Circle.Radius *= factor
	case shape.Square != nil:
		shape.Square.Side *= factor
	}
	return shape, nil
}

func (r *Rules) SumTree(_ context.Context, tree *types.Tree) (int64, error) { return sum(tree), nil }

func sum(tree *types.Tree) int64 {
	if tree == nil {
		return 0
	}
	total := int64(tree.Value) + sum(tree.Rest)
	for _, child := range tree.Children {
		total += sum(child)
	}
	for _, branch := range tree.Named {
		total += sum(branch)
	}
	return total
}

func (r *Rules) CountWords(_ context.Context, words types.Words) (types.Counts, error) {
	counts := types.Counts{}
	for _, word := range words {
		counts[word]++
	}
	return counts, nil
}

func (r *Rules) UniquePoints(_ context.Context, points []*base.Point) ([]*base.Point, error) {
	var unique []*base.Point
	seen := map[base.Point]bool{}
	for _, point := range points {
		if !seen[*point] {
			seen[*point] = true
			unique = append(unique, point)
		}
	}
	return unique, nil
}

func (r *Rules) LabelPoints(_ context.Context, points []*base.Point) (map[*base.Point]string, error) {
	labels := map[*base.Point]string{}
	for _, point := range points {
		labels[point] = fmt.Sprintf("%d:%d", point.X, point.Y)
	}
	return labels, nil
}

func (r *Rules) Measure(_ context.Context, blobs [][]byte) (map[string]int32, error) {
	lengths := map[string]int32{}
	for _, blob := range blobs {
		lengths[string(blob)] = int32(len(blob))
	}
	return lengths, nil
}

func (r *Rules) Grid(_ context.Context, rows, columns int32) ([][]int32, error) {
	grid := make([][]int32, rows)
	for row := range grid {
		for column := range columns {
			grid[row] = append(grid[row], int32(row)*columns+column)
		}
	}
	return grid, nil
}

func (r *Rules) JoinArguments(_ context.Context, fifth string, first int32, third []bool) (string, error) {
	words := []string{fmt.Sprint(first)}
	for _, yes := range third {
		words = append(words, map[bool]string{true: "yes", false: "no"}[yes])
	}
	return strings.Join(append(words, fifth), "/"), nil
}

func (r *Rules) DescribeStrict(_ context.Context, value *types.Strict) (string, error) {
	return fmt.Sprintf("%d:%s", value.Id, value.Name), nil
}

func (r *Rules) Fail(_ context.Context, failure types.Failure, subject string) (string, error) {
	return strings.ToUpper(subject) + "!", fail(failure, subject)
}

func (r *Rules) FailVoid(_ context.Context, failure types.Failure, subject string) error {
	return fail(failure, subject)
}

func (r *Rules) FailUndeclared(_ context.Context, failure types.Failure) (int32, error) {
	return 0, fail(failure, "undeclared")
}

func fail(failure types.Failure, subject string) error {
	switch failure {
	case types.Failure_NOT_FOUND:
		return &base.NotFound{What: subject}
	case types.Failure_REJECTED:
		return &types.Rejected{Reason: subject, Code: 409, Details: []string{}}
	case types.Failure_UNDECLARED:
		return errUndeclared
	}
	return nil
}

func (r *Rules) Note(_ context.Context, topic, text string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes[topic] = append(r.notes[topic], text)
	return nil
}

func (r *Rules) FailQuietly(context.Context, string) error { return errUndeclared }

func (r *Rules) Notes(_ context.Context, topic string) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string{}, r.notes[topic]...), nil
}

func (r *Rules) Pause(ctx context.Context, milliseconds int32) (int32, error) {
	select {
	case <-time.After(time.Duration(milliseconds) * time.Millisecond):
		return milliseconds, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (r *Rules) Misbehave(_ context.Context, kind types.Misbehaviour) (int32, error) {
	if kind != types.Misbehaviour_NONE {
		return 0, errUndeclared
	}
	return 1, nil
}
