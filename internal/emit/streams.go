package emit

import (
	"fmt"
	"strings"

	"github.com/fulmar-rpc/fulmar/gen/schema"
)

// The values of the annotation streaming.mode, as Kitex has them.
const (
	streamsNone          = "unary"
	streamsClient        = "client"
	streamsServer        = "server"
	streamsBidirectional = "bidirectional"
)

// streamMode returns what of a method streams, streamsNone if nothing does or can.
func streamMode(method *schema.Method) string {
	annotation := findAnnotation(method.Annotations, annotationStreaming)
	if annotation == nil || annotation.Value == streamsNone {
		return streamsNone
	}
	if _, problem := streamProblem(method, annotation); problem != "" {
		return streamsNone
	}
	return annotation.Value
}

// isStream reports whether a method has other than one message each way.
func isStream(method *schema.Method) bool { return streamMode(method) != streamsNone }

// hasRecords reports whether a method has structs for its arguments and its result: what
// streams send are the structs of the definition, or messages.
func hasRecords(method *schema.Method) bool { return !isStream(method) && !inProtobuf(method.Service) }

// checkStream reports what cannot be a stream.
func (g *generator) checkStream(method *schema.Method) {
	annotation := findAnnotation(method.Annotations, annotationStreaming)
	if annotation == nil || annotation.Value == streamsNone {
		return
	}
	if position, problem := streamProblem(method, annotation); problem != "" {
		g.errorf(position, "method %.200s: %s", method.Service.Name+"."+method.Name, problem)
	}
}

// streamProblem returns why a method that shall stream cannot, "" if it can.
func streamProblem(method *schema.Method, annotation *schema.Annotation) (at schema.Position, problem string) {
	at = method.Position
	switch annotation.Value {
	case streamsClient, streamsServer, streamsBidirectional:
	default:
		return annotation.Position, fmt.Sprintf("%s: %.80q is not known, expected client, server, bidirectional or unary", annotationStreaming, annotation.Value)
	}
	switch {
	case method.Oneway:
		return annotation.Position, "is oneway and cannot stream"
	case len(method.Throws) > 0:
		return method.Throws[0].Position, "streams, and cannot declare exceptions: a stream ends with a code and a text"
	case len(method.Arguments) != 1 || !isMessage(method.Arguments[0].Type):
		return at, "streams, so it has one argument, which is a struct: the messages that clients send"
	case !isMessage(method.Result):
		return at, "streams, so its result is a struct: the messages that servers send"
	}
	return at, ""
}

func isMessage(t *schema.Type) bool {
	return t.Kind == schema.KindStruct || t.Kind == schema.KindMessage
}

// streamed returns the Go types of what clients and servers send.
func (p *printer) streamed(method *schema.Method) (request, response string) {
	name := func(t *schema.Type) string {
		if t.Kind == schema.KindMessage {
			return p.imports.message(t.Message)
		}
		return strings.TrimPrefix(p.goType(t), "*")
	}
	return name(method.Arguments[0].Type), name(method.Result)
}

// streamType returns the runtime's type of a stream, on one side ("Client" or "Server").
func (p *printer) streamType(method *schema.Method, side string) string {
	request, response := p.streamed(method)
	switch streamMode(method) {
	case streamsServer:
		return p.imports.runtime("ServerStreaming"+side) + "[" + response + "]"
	case streamsClient:
		return p.imports.runtime("ClientStreaming"+side) + "[" + request + ", " + response + "]"
	default:
		return p.imports.runtime("BidiStreaming"+side) + "[" + request + ", " + response + "]"
	}
}

// serverSignature is a method of the server's interface.
func (p *printer) serverSignature(method *schema.Method) string {
	if !isStream(method) {
		return method.GoName + "(" + p.parameters(method) + ") " + p.results(method)
	}
	stream := "stream " + p.streamType(method, "Server")
	if streamMode(method) == streamsServer {
		request, _ := p.streamed(method)
		stream = p.streamRequest(method) + " *" + request + ", " + stream
	}
	return method.GoName + "(" + stream + ") error"
}

// clientSignature is a method of the client's interface.
func (p *printer) clientSignature(method *schema.Method) string {
	options := ", options ..." + p.imports.runtime("CallOption") + ") "
	if !isStream(method) {
		return method.GoName + "(" + p.parameters(method) + options + p.results(method)
	}
	parameters := "ctx " + p.imports.std("context", "Context")
	if streamMode(method) == streamsServer {
		request, _ := p.streamed(method)
		parameters += ", " + p.streamRequest(method) + " *" + request
	}
	return method.GoName + "(" + parameters + options + "(" + p.streamType(method, "Client") + ", error)"
}

// streamRequest is what the one message is called that a client sends.
func (p *printer) streamRequest(method *schema.Method) string {
	if name := p.parameterNames(method)[0]; name != "stream" {
		return name
	}
	return "request"
}

// streamClientMethod prints a method of a client that opens a stream.
func (p *printer) streamClientMethod(service *schema.Service, method *schema.Method) {
	request, response := p.streamed(method)
	variable := methodVariable(service.GoName, method.GoName)
	p.P()
	p.P("func (c *", clientTypeName(service.GoName), ") ", p.clientSignature(method), " {")
	switch streamMode(method) {
	case streamsServer:
		p.P("return ", p.imports.runtime("OpenServerStream"), "[", request, ", ", response, "](ctx, c.caller, ", variable, ", ", p.streamRequest(method), ", options...)")
	case streamsClient:
		p.P("return ", p.imports.runtime("OpenClientStream"), "[", request, ", ", response, "](ctx, c.caller, ", variable, ", options...)")
	default:
		p.P("return ", p.imports.runtime("OpenBidiStream"), "[", request, ", ", response, "](ctx, c.caller, ", variable, ", options...)")
	}
	p.P("}")
}

// streamMethodDesc prints the rest of a streaming method's description.
func (p *printer) streamMethodDesc(service *schema.Service, method *schema.Method) {
	request, _ := p.streamed(method)
	mode := streamMode(method)
	if mode != streamsServer {
		p.P("ClientStreams: true,")
	}
	if mode != streamsClient {
		p.P("ServerStreams: true,")
	}
	if inProtobuf(service) {
		p.P("Codec: ", p.imports.protobuf("Binary"), ",")
	} else {
		p.P("Codec: ", p.codecOf(method), ",")
		p.newStreamed("NewRequest", method.Arguments[0].Type.Struct)
		p.newStreamed("NewReply", method.Result.Struct)
	}
	call := "return implementation.(" + serverName(service.GoName) + ")." + method.GoName
	stream := "stream " + p.streamType(method, "Server")
	switch mode {
	case streamsServer:
		p.P("InvokeStream: ", p.imports.runtime("ServeServerStream"), "(func(implementation any, request *", request, ", ", stream, ") error {")
		p.P(call, "(request, stream)")
	case streamsClient:
		p.P("InvokeStream: ", p.imports.runtime("ServeClientStream"), "(func(implementation any, ", stream, ") error {")
		p.P(call, "(stream)")
	default:
		p.P("InvokeStream: ", p.imports.runtime("ServeBidiStream"), "(func(implementation any, ", stream, ") error {")
		p.P(call, "(stream)")
	}
	p.P("}),")
	p.P("}")
}

// newStreamed prints the function that makes a message, if it has defaults.
func (p *printer) newStreamed(field string, s *schema.Struct) {
	if p.hasDefaults(s) {
		p.P(field, ": func() any { return ", p.constructor(s), "() },")
	}
}
