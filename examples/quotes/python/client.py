"""Calls the service quotes.v1.Quotes with grpcio: client.py PORT

The messages are described here instead of by generated code, so that grpcio and protobuf are
all that is needed.
"""

import sys

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

MESSAGES = {
    "Quote": (("symbol", "STRING"), ("cents", "INT64")),
    "Symbol": (("name", "STRING"),),
    "Order": (("symbol", "STRING"), ("quantity", "INT32")),
    "Total": (("orders", "INT32"), ("cents", "INT64")),
}


def messages():
    file = descriptor_pb2.FileDescriptorProto(name="quotes.proto", package="quotes.v1", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, (field, kind) in enumerate(fields, 1):
            kind = descriptor_pb2.FieldDescriptorProto.Type.Value("TYPE_" + kind)
            message.field.add(name=field, number=number, label="LABEL_OPTIONAL", type=kind)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return (message_factory.GetMessageClass(pool.FindMessageTypeByName("quotes.v1." + name)) for name in MESSAGES)


Quote, Symbol, Order, Total = messages()


def main(port):
    with grpc.insecure_channel("127.0.0.1:" + port) as channel:

        def method(kind, name, request, response):
            return kind(
                "/quotes.v1.Quotes/" + name,
                request_serializer=request.SerializeToString,
                response_deserializer=response.FromString,
            )

        last = method(channel.unary_unary, "Last", Symbol, Quote)
        watch = method(channel.unary_stream, "Watch", Symbol, Quote)
        trade = method(channel.stream_stream, "Trade", Order, Quote)
        quote = last(Symbol(name="TEA"), timeout=20)
        print("%s costs %d" % (quote.symbol, quote.cents))
        print("it has cost", [quote.cents for quote in watch(Symbol(name="TEA"), timeout=20)])
        orders = iter([Order(symbol="TEA", quantity=1), Order(symbol="CUP", quantity=2)])
        print("orders cost", [quote.cents for quote in trade(orders, timeout=20)])
        try:
            last(Symbol(name="gold"), timeout=20)
        except grpc.RpcError as error:
            print(error.code().name, error.details())


main(sys.argv[1])
