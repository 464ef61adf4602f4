package eventloop

import "github.com/fulmar-rpc/fulmar/internal/linkbuf"

// Memory is what dialled connections share for messages that are longer than one read of a
// socket brings, which most of them have for a moment only: see Config.Memory. It
// keeps 8 MiB (SpareBytes) that nobody uses at most, and what nobody has used for a second
// (SpareAge) goes to the garbage collector when that runs. The zero value is ready to use.
// It is safe for concurrent use and must not be copied.
type Memory struct{ pool linkbuf.Pool }
