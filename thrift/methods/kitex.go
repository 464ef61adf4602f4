package methods

// NocopyWriter is what FastWriteNocopy takes. It has the method of the interface of
// that name in github.com/cloudwego/gopkg/protocol/thrift, so values of that type can
// be passed.
type NocopyWriter interface {
	// WriteDirect is not called.
	WriteDirect(b []byte, remainCap int) error
}
