package emit

import (
	"slices"
	"strconv"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// Which of the structs that a method takes and returns are views.
const (
	viewsRequest  = "request"
	viewsResponse = "response"
	viewsBoth     = "both"
	viewsNone     = "none"
)

// methodViews is what the definition, or else the options, ask for.
func (g *generator) methodViews(method *schema.Method) string {
	if g.options.Kitex || isStream(method) {
		return ""
	}
	for _, annotations := range []schema.Annotations{method.Annotations, method.Service.Annotations} {
		if annotation := findAnnotation(annotations, annotationViews); annotation != nil {
			return annotation.Value
		}
	}
	return g.options.ViewMethods
}

// takesViews says that a method takes its structs as views.
func (g *generator) takesViews(method *schema.Method) bool {
	asked := g.methodViews(method)
	return asked == viewsRequest || asked == viewsBoth
}

// returnsView says that a method returns its struct as a view.
func (g *generator) returnsView(method *schema.Method) bool {
	asked := g.methodViews(method)
	return method.Result.Kind == schema.KindStruct && (asked == viewsResponse || asked == viewsBoth)
}

// isViewedArgument says that an argument is passed as a view. One with a default is not:
// that would have to be encoded for each call that does not give it.
func (g *generator) isViewedArgument(method *schema.Method, argument *schema.Field) bool {
	return argument.Type.Kind == schema.KindStruct && argument.Default == nil && g.takesViews(method)
}

// structsInViewForm are the structs of which the methods of a service take or return views.
func (g *generator) structsInViewForm(service *schema.Service) (list []*schema.Struct) {
	for _, method := range service.Methods {
		for _, argument := range method.Arguments {
			if g.isViewedArgument(method, argument) {
				list = append(list, argument.Type.Struct)
			}
		}
		if g.returnsView(method) {
			list = append(list, method.Result.Struct)
		}
	}
	return list
}

// checkMethodViews reports what go.views cannot mean.
func (g *generator) checkMethodViews(annotations schema.Annotations) {
	annotation := findAnnotation(annotations, annotationViews)
	if annotation != nil && !slices.Contains([]string{viewsRequest, viewsResponse, viewsBoth, viewsNone}, annotation.Value) {
		g.errorf(annotation.Position, "annotation %s: %.80q is not known, expected request, response, both or none", annotationViews, annotation.Value)
	}
}

// checkViewsOf warns of a method that has no struct in the place for which its go.views asks.
func (g *generator) checkViewsOf(method *schema.Method) {
	annotation := findAnnotation(method.Annotations, annotationViews)
	if annotation == nil || annotation.Value == viewsNone || g.options.Kitex || g.returnsView(method) {
		return
	}
	if isStream(method) {
		g.warningf(annotation.Position, "annotation %s: has no effect on streams, whose messages are structs", annotationViews)
	} else if !slices.ContainsFunc(method.Arguments, func(argument *schema.Field) bool { return g.isViewedArgument(method, argument) }) {
		g.warningf(annotation.Position, "annotation %s: %s of %s has no effect, because there is no struct that could be a view", annotationViews, annotation.Value, method.Name)
	}
}

// argumentType is the type of an argument of a Go method.
func (p *printer) argumentType(method *schema.Method, argument *schema.Field) string {
	if p.isViewedArgument(method, argument) {
		return p.viewOf(argument.Type.Struct)
	}
	return p.passedType(argument.Type)
}

// returnedType is the type of the result of a Go method.
func (p *printer) returnedType(method *schema.Method) string {
	if p.returnsView(method) {
		return p.viewOf(method.Result.Struct)
	}
	return p.passedType(method.Result)
}

// zeroResult is what a Go method returns beside an error.
func (p *printer) zeroResult(method *schema.Method) string {
	if p.returnsView(method) {
		return p.viewOf(method.Result.Struct) + "{}"
	}
	return p.zeroValue(method.Result)
}

// heldStruct is the type of the struct, or the view of one, that a member holds.
func (p *printer) heldStruct(m member) string {
	if m.viewed {
		return p.viewOf(m.Type.Struct)
	}
	return p.goType(m.Type)
}

// keepMethod prints what tells the codec that views of the message are kept.
func (p *printer) keepMethod(r *record) {
	if !slices.ContainsFunc(r.members, func(m member) bool { return m.viewed }) {
		return
	}
	p.P()
	p.doc(sentence("KeepsThrift tells that views in it keep the bytes that they were read from."))
	p.P("func (s *", r.goName, ") KeepsThrift() {")
	p.P("}")
	if r.lends == "" {
		return
	}
	p.P()
	p.doc(sentence("LeaseThrift tells the codec how long these may be used."))
	p.P("func (s *", r.goName, ") LeaseThrift() (lease *", p.imports.thrift("Lease"), ", method string) {")
	p.P("return &s.lease, ", strconv.Quote(r.lends))
	p.P("}")
}
