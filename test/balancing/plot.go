package main

import (
	"image/color"
	"os"
	"strings"
	"time"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"

	"github.com/fulmar-rpc/fulmar/cluster"
)

const (
	plotWidth  = 13 * vg.Inch
	plotHeight = 9 * vg.Inch
	barWidth   = 8 * vg.Millimeter / 2
	plotDPI    = 96
)

// colorOf returns the color of a method: five that those who see no red can tell apart.
func colorOf(method cluster.Method) color.Color {
	switch method {
	case cluster.LeastLoaded:
		return color.RGBA{R: 0x00, G: 0x72, B: 0xb2, A: 0xff}
	case cluster.RoundRobin:
		return color.RGBA{R: 0xe6, G: 0x9f, B: 0x00, A: 0xff}
	case cluster.Random:
		return color.RGBA{R: 0x99, G: 0x99, B: 0x99, A: 0xff}
	case cluster.ConsistentHash:
		return color.RGBA{R: 0xcc, G: 0x79, B: 0xa7, A: 0xff}
	}
	return color.RGBA{R: 0x00, G: 0x9e, B: 0x73, A: 0xff}
}

// drawPlot draws a table: the 99th percentile, the calls that failed, and the load of the
// busiest instance.
func drawPlot(name string, t table) error {
	panels := []struct {
		title string
		value func(r result) float64
		log   bool
		least float64
	}{
		{"99th percentile, ms (callers wait 1,000)", func(r result) float64 { return float64(r.p99) / float64(time.Millisecond) }, true, 50},
		{"calls that failed, %", func(r result) float64 { return r.failed * 100 }, true, 0.001},
		{"busiest instance, times the mean", func(r result) float64 { return r.skew }, false, 0},
	}
	plots := make([][]*plot.Plot, 0, len(panels))
	for i, panel := range panels {
		p := plot.New()
		p.Y.Label.Text = panel.title
		if i == 0 {
			p.Title.Text = group(t.instances) + " instances, load 70 %"
			p.Legend.Top, p.Legend.Left, p.Legend.Padding = true, true, vg.Millimeter/2
		}
		if panel.log {
			p.Y.Scale, p.Y.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
		}
		p.Add(lines())
		addBars(p, t, panel.value, panel.least, i == 0)
		plots = append(plots, []*plot.Plot{p})
	}
	image := vgimg.NewWith(vgimg.UseWH(plotWidth, plotHeight), vgimg.UseDPI(plotDPI))
	tiles := draw.Tiles{Rows: len(panels), Cols: 1, PadX: vg.Millimeter, PadY: 2 * vg.Millimeter, PadTop: vg.Millimeter, PadBottom: vg.Millimeter, PadRight: 2 * vg.Millimeter}
	canvases := plot.Align(plots, tiles, draw.New(image))
	for i := range plots {
		plots[i][0].Draw(canvases[i][0])
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	if _, err := (vgimg.PngCanvas{Canvas: image}).WriteTo(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// lines are thin and horizontal.
func lines() *plotter.Grid {
	grid := plotter.NewGrid()
	grid.Vertical.Width = 0
	grid.Horizontal.Color = color.Gray{Y: 0xdd}
	return grid
}

// addBars adds a bar for each method and scenario.
func addBars(p *plot.Plot, t table, value func(r result) float64, least float64, legend bool) {
	names := make([]string, len(t.rows))
	for i, method := range methods() {
		b := bars{values: make([]float64, len(t.rows)), least: least, color: colorOf(method), offset: barWidth * (vg.Length(i-len(methods())/2) - 0.5)}
		for j, r := range t.rows {
			b.values[j] = value(r.results[method])
			names[j] = strings.ReplaceAll(strings.ReplaceAll(r.scenario.name, "`", ""), ", ", ",\n")
		}
		p.Add(b)
		if legend {
			p.Legend.Add(string(method), b)
		}
	}
	p.NominalX(names...)
}

// bars are those of a method. plotter.BarChart begins at zero, which a logarithm has not;
// these begin at least, and what is below it is not drawn.
type bars struct {
	values []float64
	least  float64
	color  color.Color
	offset vg.Length
}

var (
	_ plot.Plotter     = bars{}
	_ plot.DataRanger  = bars{}
	_ plot.Thumbnailer = bars{}
)

func (b bars) Plot(canvas draw.Canvas, p *plot.Plot) {
	toX, toY := p.Transforms(&canvas)
	for i, value := range b.values {
		if value > b.least {
			left := toX(float64(i)) + b.offset
			fill(canvas, b.color, left, toY(b.least), left+barWidth, toY(value))
		}
	}
}

func (b bars) DataRange() (xMin, xMax, yMin, yMax float64) {
	yMax = b.least
	for _, value := range b.values {
		yMax = max(yMax, value)
	}
	return -0.5, float64(len(b.values)) - 0.5, b.least, yMax
}

func (b bars) Thumbnail(canvas *draw.Canvas) {
	fill(*canvas, b.color, canvas.Min.X, canvas.Min.Y, canvas.Max.X, canvas.Max.Y)
}

func fill(canvas draw.Canvas, with color.Color, left, bottom, right, top vg.Length) {
	canvas.FillPolygon(with, []vg.Point{{X: left, Y: bottom}, {X: right, Y: bottom}, {X: right, Y: top}, {X: left, Y: top}})
}
