package calls_test

import (
	"context"

	"github.com/fulmar-rpc/fulmar/test/interop/gen/views/base"
	"github.com/fulmar-rpc/fulmar/test/interop/gen/views/everything"
)

// gateway passes calls on in view form. Of some messages it sets a field to what that is,
// so that they are written as a patch and what is around it.
type gateway struct{ behind everything.EverythingClient }

var _ everything.EverythingServer = gateway{}

func (g gateway) Ping(ctx context.Context) error {
	return g.behind.Ping(ctx)
}

func (g gateway) Describe(ctx context.Context) (string, error) {
	return g.behind.Describe(ctx)
}

func (g gateway) Stamp(ctx context.Context, moment base.Moment, level base.Level) (base.Moment, error) {
	return g.behind.Stamp(ctx, moment, level)
}

func (g gateway) Invert(ctx context.Context, value bool) (bool, error) {
	return g.behind.Invert(ctx, value)
}

func (g gateway) FlipI8(ctx context.Context, value int8) (int8, error) {
	return g.behind.FlipI8(ctx, value)
}

func (g gateway) FlipI16(ctx context.Context, value int16) (int16, error) {
	return g.behind.FlipI16(ctx, value)
}

func (g gateway) FlipI32(ctx context.Context, value int32) (int32, error) {
	return g.behind.FlipI32(ctx, value)
}

func (g gateway) FlipI64(ctx context.Context, value int64) (int64, error) {
	return g.behind.FlipI64(ctx, value)
}

func (g gateway) Negate(ctx context.Context, value float64) (float64, error) {
	return g.behind.Negate(ctx, value)
}

func (g gateway) RepeatText(ctx context.Context, text string, count int32) (string, error) {
	return g.behind.RepeatText(ctx, text, count)
}

func (g gateway) FlipBytes(ctx context.Context, value []byte) ([]byte, error) {
	return g.behind.FlipBytes(ctx, value)
}

func (g gateway) NextColor(ctx context.Context, color everything.Color) (everything.Color, error) {
	return g.behind.NextColor(ctx, color)
}

func (g gateway) EchoScalars(ctx context.Context, value everything.ScalarsView) (everything.ScalarsView, error) {
	if value.HasText() {
		value.SetText(value.Text())
	}
	return g.behind.EchoScalars(ctx, value)
}

func (g gateway) EchoContainers(ctx context.Context, value everything.ContainersView) (everything.ContainersView, error) {
	return g.behind.EchoContainers(ctx, value)
}

func (g gateway) EchoDefaults(ctx context.Context, value everything.DefaultsView) (everything.DefaultsView, error) {
	if value.HasMedium() {
		value.SetMedium(value.Medium())
	}
	return g.behind.EchoDefaults(ctx, value)
}

func (g gateway) EchoDrawing(ctx context.Context, value everything.DrawingView) (everything.DrawingView, error) {
	value.SetTitle(value.Title())
	return g.behind.EchoDrawing(ctx, value)
}

func (g gateway) EchoTree(ctx context.Context, value everything.TreeView) (everything.TreeView, error) {
	if value.HasValue() {
		value.SetValue(value.Value())
	}
	return g.behind.EchoTree(ctx, value)
}

func (g gateway) EchoNothing(ctx context.Context, value everything.NothingView) (everything.NothingView, error) {
	return g.behind.EchoNothing(ctx, value)
}

func (g gateway) EchoWords(ctx context.Context, value everything.Words) (everything.Words, error) {
	return g.behind.EchoWords(ctx, value)
}

func (g gateway) EchoNumbers(ctx context.Context, value []int64) ([]int64, error) {
	return g.behind.EchoNumbers(ctx, value)
}

func (g gateway) FreshDefaults(ctx context.Context) (everything.DefaultsView, error) {
	return g.behind.FreshDefaults(ctx)
}

func (g gateway) Scale(ctx context.Context, shape everything.ShapeView, factor float64) (everything.ShapeView, error) {
	return g.behind.Scale(ctx, shape, factor)
}

func (g gateway) SumTree(ctx context.Context, tree everything.TreeView) (int64, error) {
	if tree.HasValue() {
		tree.SetValue(tree.Value())
	}
	return g.behind.SumTree(ctx, tree)
}

func (g gateway) CountWords(ctx context.Context, words everything.Words) (everything.Counts, error) {
	return g.behind.CountWords(ctx, words)
}

func (g gateway) UniquePoints(ctx context.Context, points []base.Point) ([]base.Point, error) {
	return g.behind.UniquePoints(ctx, points)
}

func (g gateway) LabelPoints(ctx context.Context, points []base.Point) (map[base.Point]string, error) {
	return g.behind.LabelPoints(ctx, points)
}

func (g gateway) Measure(ctx context.Context, blobs [][]byte) (map[string]int32, error) {
	return g.behind.Measure(ctx, blobs)
}

func (g gateway) Grid(ctx context.Context, rows int32, columns int32) ([][]int32, error) {
	return g.behind.Grid(ctx, rows, columns)
}

func (g gateway) JoinArguments(ctx context.Context, fifth string, first int32, third []bool) (string, error) {
	return g.behind.JoinArguments(ctx, fifth, first, third)
}

func (g gateway) DescribeStrict(ctx context.Context, value everything.StrictView) (string, error) {
	value.SetName(value.Name())
	return g.behind.DescribeStrict(ctx, value)
}

func (g gateway) Fail(ctx context.Context, failure everything.Failure, subject string) (string, error) {
	return g.behind.Fail(ctx, failure, subject)
}

func (g gateway) FailVoid(ctx context.Context, failure everything.Failure, subject string) error {
	return g.behind.FailVoid(ctx, failure, subject)
}

func (g gateway) FailUndeclared(ctx context.Context, failure everything.Failure) (int32, error) {
	return g.behind.FailUndeclared(ctx, failure)
}

func (g gateway) Note(ctx context.Context, topic string, text string) error {
	return g.behind.Note(ctx, topic, text)
}

func (g gateway) FailQuietly(ctx context.Context, topic string) error {
	return g.behind.FailQuietly(ctx, topic)
}

func (g gateway) Notes(ctx context.Context, topic string) ([]string, error) {
	return g.behind.Notes(ctx, topic)
}

func (g gateway) Pause(ctx context.Context, milliseconds int32) (int32, error) {
	return g.behind.Pause(ctx, milliseconds)
}

func (g gateway) Misbehave(ctx context.Context, kind everything.Misbehaviour) (int32, error) {
	return g.behind.Misbehave(ctx, kind)
}
