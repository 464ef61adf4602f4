# load: nothing.thrift main.thrift -I nowhere
-- main.thrift --
struct Fine {}
