"""Foreign peers for the interoperability tests: thriftpy2 and Apache Thrift.

schema.py       what an IDL file says, for both runtimes
thriftpy.py     client and server on thriftpy2
apache.py       client and server on Apache Thrift
apache_only.py  the IDL file that thriftpy2 cannot read, written out by hand
values.py       the notation of cases.json, to and from objects of a runtime
rules.py        what each method does: the comments of everything.thrift as code
message.py      messages as bytes, their framing and their annotation
cases.py        runs the cases of cases.json against a server
"""
