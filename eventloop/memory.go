package eventloop

import "github.com/fulmar-rpc/fulmar/internal/linkbuf"

// Memory is what dialled connections share for messages that are longer than one read of a
// socket brings, which most of them have for a moment only: see Config.Memory. What has not
// been used for a while goes to the garbage collector. The zero value is ready to use. It is
// safe for concurrent use and must not be copied.
type Memory struct{ pool linkbuf.Pool }
