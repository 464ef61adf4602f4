package byteswap

// The Go code under the signatures of the public functions, so that one test
// takes both.

func PortablePut16(dst []byte, src []uint16) { portable16(dst, memory(src)) }
func PortablePut32(dst []byte, src []uint32) { portable32(dst, memory(src)) }
func PortablePut64(dst []byte, src []uint64) { portable64(dst, memory(src)) }

func PortableGet16(dst []uint16, src []byte) { portable16(memory(dst), src) }
func PortableGet32(dst []uint32, src []byte) { portable32(memory(dst), src) }
func PortableGet64(dst []uint64, src []byte) { portable64(memory(dst), src) }

// Memory returns the bytes that numbers consist of.
func Memory[T Number16 | Number32 | Number64](numbers []T) []byte { return memory(numbers) }
