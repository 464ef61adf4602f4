"""A client and a server of interop.notes.v1.Notes with grpcio.

    notes.py server            prints the port, serves until standard input ends
    notes.py client PORT       calls everything, prints "ok" or what is wrong

Messages are made from a description built here, so that no code is generated.
"""

import sys
import threading
import time
from concurrent import futures

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

SERVICE = "interop.notes.v1.Notes"
# A google.rpc.Status: code 8, message "no more notes".
DETAILS = b"\x08\x08\x12\x0dno more notes"


def note_class():
    file = descriptor_pb2.FileDescriptorProto(name="notes.proto", package="interop.notes.v1", syntax="proto3")
    note = file.message_type.add(name="Note")
    for number, (name, kind) in enumerate((("text", "TYPE_STRING"), ("number", "TYPE_INT64")), 1):
        note.field.add(
            name=name, number=number, label="LABEL_OPTIONAL",
            type=descriptor_pb2.FieldDescriptorProto.Type.Value(kind),
        )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("interop.notes.v1.Note"))


Note = note_class()


# --- server ---


def say(request, context):
    if request.text == "fail":
        context.set_trailing_metadata((("grpc-status-details-bin", DETAILS),))
        context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "no more notes")
    if request.text == "metadata":
        metadata = dict(context.invocation_metadata())
        return Note(text="%s %s" % (metadata.get("who"), list(metadata.get("raw-bin", b""))))
    if request.text == "long":
        return Note(text="x" * 100_000)
    if request.text == "hang":
        gone = threading.Event()
        context.add_callback(gone.set)
        gone.wait(30)
        return Note()
    context.send_initial_metadata((("header-bin", b"\x00\xff"),))
    context.set_trailing_metadata((("trailer", "t"),))
    return request


def count(request, context):
    for number in range(1, request.number + 1):
        yield Note(text=request.text, number=number)


def collect(requests, context):
    texts = [note.text for note in requests]
    return Note(text="+".join(texts), number=len(texts))


def chat(requests, context):
    for note in requests:
        yield Note(text="you said " + note.text, number=note.number)


def serve():
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=8), compression=grpc.Compression.Gzip)
    kinds = {
        "Say": grpc.unary_unary_rpc_method_handler, "Count": grpc.unary_stream_rpc_method_handler,
        "Collect": grpc.stream_unary_rpc_method_handler, "Chat": grpc.stream_stream_rpc_method_handler,
    }
    functions = {"Say": say, "Count": count, "Collect": collect, "Chat": chat}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(SERVICE, {
        name: kind(functions[name], request_deserializer=Note.FromString, response_serializer=Note.SerializeToString)
        for name, kind in kinds.items()
    }),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdin.read()
    server.stop(None)


# --- client ---


class Wrong(Exception):
    """Something that a server did otherwise than it should."""


def expect(what, got, want):
    if got != want:
        raise Wrong("%s: %r, want %r" % (what, got, want))


class Client:
    def __init__(self, channel):
        def method(kind, name):
            return kind(
                "/%s/%s" % (SERVICE, name), request_serializer=Note.SerializeToString, response_deserializer=Note.FromString,
            )

        self.say = method(channel.unary_unary, "Say")
        self.count = method(channel.unary_stream, "Count")
        self.collect = method(channel.stream_unary, "Collect")
        self.chat = method(channel.stream_stream, "Chat")
        self.missing = method(channel.unary_unary, "Missing")


def unary(client):
    note, call = client.say.with_call(Note(text="hello", number=-7), timeout=20)
    expect("echo", (note.text, note.number), ("hello", -7))
    expect("header", dict(call.initial_metadata()).get("header-bin"), b"\x00\xff")
    expect("trailer", dict(call.trailing_metadata()).get("trailer"), "t")
    note = client.say(Note(text="metadata"), timeout=20, metadata=(("who", "python"), ("raw-bin", b"\x01\x00\xfe")))
    expect("metadata", note.text, "python [1, 0, 254]")
    for compression in (grpc.Compression.NoCompression, grpc.Compression.Gzip):
        expect("long", client.say(Note(text="long"), timeout=20, compression=compression).text, "x" * 100_000)
        text = "y" * 200_000
        expect("long request", client.say(Note(text=text), timeout=20, compression=compression).text, text)


def failures(client):
    try:
        client.say(Note(text="fail"), timeout=20)
        raise Wrong("fail did not")
    except grpc.RpcError as error:
        expect("fail", (error.code(), error.details()), (grpc.StatusCode.RESOURCE_EXHAUSTED, "no more notes"))
        expect("details", dict(error.trailing_metadata()).get("grpc-status-details-bin"), DETAILS)
    try:
        client.missing(Note(), timeout=20)
        raise Wrong("a method that is not there answered")
    except grpc.RpcError as error:
        expect("missing", error.code(), grpc.StatusCode.UNIMPLEMENTED)
    try:
        client.say(Note(text="hang"), timeout=0.2)
        raise Wrong("hang answered")
    except grpc.RpcError as error:
        expect("deadline", error.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
    hanging = client.say.future(Note(text="hang"), timeout=20)
    time.sleep(0.05)
    hanging.cancel()
    expect("cancelled", hanging.cancelled(), True)


def streams(client):
    numbers = [note.number for note in client.count(Note(text="n", number=500), timeout=20)]
    expect("count", numbers, list(range(1, 501)))
    note = client.collect(iter([Note(text=text) for text in "abc"]), timeout=20)
    expect("collect", (note.text, note.number), ("a+b+c", 3))
    answers = [note.text for note in client.chat(iter([Note(text=text) for text in ("a", "b" * 300_000)]), timeout=20)]
    expect("chat", answers, ["you said a", "you said " + "b" * 300_000])
    endless = client.count(Note(number=1 << 40), timeout=20)
    expect("first", next(endless).number, 1)
    endless.cancel()
    try:
        for _ in endless:
            pass
        raise Wrong("a cancelled stream ended well")
    except grpc.RpcError as error:
        expect("cancelled stream", error.code(), grpc.StatusCode.CANCELLED)


def call(port):
    with grpc.insecure_channel("127.0.0.1:" + port) as channel:
        client = Client(channel)
        for _ in range(2):
            unary(client)
            failures(client)
            streams(client)
    print("ok")


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve()
    else:
        call(sys.argv[2])
