include missing
include 5
namespace
namespace 5
namespace go
namespace go 5
cpp_include vector
struct Fine {}
