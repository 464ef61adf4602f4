//go:build amd64 && !purego && !race && !msan && !asan

#include "textflag.h"

// From where in its 16 bytes each byte comes, for numbers of 2, 4 and 8 bytes.
DATA orders<>+0(SB)/8, $0x0607040502030001
DATA orders<>+8(SB)/8, $0x0e0f0c0d0a0b0809
DATA orders<>+16(SB)/8, $0x0405060700010203
DATA orders<>+24(SB)/8, $0x0c0d0e0f08090a0b
DATA orders<>+32(SB)/8, $0x0001020304050607
DATA orders<>+40(SB)/8, $0x08090a0b0c0d0e0f
GLOBL orders<>(SB), RODATA|NOPTR, $48

// func shuffle(dst, src *byte, length, order int)
//
// The last 32 bytes are read before all others and written after them, so the
// loops may leave out up to 31 bytes at the end, and no length needs smaller
// steps. Up to 31 bytes are written twice, with the same value. It holds for
// dst == src too, because nothing is read after it was written. 256 bytes a turn
// were no faster, and stores can seldom be aligned: dst is where a message
// happens to have the numbers.
TEXT ·shuffle(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ length+16(FP), CX
	MOVQ order+24(FP), AX
	LEAQ orders<>(SB), BX
	VBROADCASTI128 (BX)(AX*1), Y0

	VMOVDQU -32(SI)(CX*1), Y5
	VPSHUFB Y0, Y5, Y5
	LEAQ    -32(DI)(CX*1), DX

	SUBQ $128, CX
	JLT  few

many:
	VMOVDQU (SI), Y1
	VMOVDQU 32(SI), Y2
	VMOVDQU 64(SI), Y3
	VMOVDQU 96(SI), Y4
	VPSHUFB Y0, Y1, Y1
	VPSHUFB Y0, Y2, Y2
	VPSHUFB Y0, Y3, Y3
	VPSHUFB Y0, Y4, Y4
	VMOVDQU Y1, (DI)
	VMOVDQU Y2, 32(DI)
	VMOVDQU Y3, 64(DI)
	VMOVDQU Y4, 96(DI)
	ADDQ    $128, SI
	ADDQ    $128, DI
	SUBQ    $128, CX
	JGE     many

few:
	// CX is what is left, less 128.
	ADDQ $96, CX
	JLT  last

one:
	VMOVDQU (SI), Y1
	VPSHUFB Y0, Y1, Y1
	VMOVDQU Y1, (DI)
	ADDQ    $32, SI
	ADDQ    $32, DI
	SUBQ    $32, CX
	JGE     one

last:
	VMOVDQU Y5, (DX)
	VZEROUPPER
	RET
