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

// SHUFFLE128 takes 128 bytes from SI to DI, in the order Y0, and CX down by as many.
// The flags are those of CX.
#define SHUFFLE128 \
	VMOVDQU (SI), Y1; \
	VMOVDQU 32(SI), Y2; \
	VMOVDQU 64(SI), Y3; \
	VMOVDQU 96(SI), Y4; \
	VPSHUFB Y0, Y1, Y1; \
	VPSHUFB Y0, Y2, Y2; \
	VPSHUFB Y0, Y3, Y3; \
	VPSHUFB Y0, Y4, Y4; \
	VMOVDQU Y1, (DI); \
	VMOVDQU Y2, 32(DI); \
	VMOVDQU Y3, 64(DI); \
	VMOVDQU Y4, 96(DI); \
	ADDQ    $128, SI; \
	ADDQ    $128, DI; \
	SUBQ    $128, CX

// func shuffle(dst, src *byte, length, order int)
//
// The last 32 bytes are read before all others and written after them, so the
// loops may leave out up to 31 bytes at the end, and no length needs smaller
// steps. Up to 31 bytes are written twice, with the same value. It holds for
// dst == src too, because nothing is read after it was written. 256 bytes a turn
// were no faster.
//
// From 512 bytes on the first 32 are treated likewise, so that the loops may
// begin where stores are aligned, if that leaves numbers whole. From 16 KiB on
// src is fetched 1024 bytes ahead, and dst, for writing, 512, never beyond their
// ends. ADR-0035 has what both gain.
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

	XORL R10, R10
	CMPQ CX, $512
	JLT  near

	VMOVDQU (SI), Y6
	VPSHUFB Y0, Y6, Y6
	MOVQ    DI, R10

	// R8 is how far it is to the next 32 bytes. The first byte of an order is the
	// size of its numbers, less one.
	MOVQ    DI, R8
	NEGQ    R8
	ANDQ    $31, R8
	MOVBQZX (BX)(AX*1), R9
	TESTQ   R8, R9
	JNE     unaligned
	ADDQ    R8, SI
	ADDQ    R8, DI
	SUBQ    R8, CX

unaligned:
	CMPQ CX, $(16<<10)
	JLT  near

	// CX is what is left, less a turn and what is fetched in it.
	SUBQ $(128+1024+128), CX

ahead:
	// PREFETCHW 512(DI) and 576(DI), which Go's assembler does not know. It does
	// nothing on processors that have not got it.
	BYTE    $0x0F; BYTE $0x0D; BYTE $0x8F; LONG $512
	BYTE    $0x0F; BYTE $0x0D; BYTE $0x8F; LONG $576

	PREFETCHT0 1024(SI)
	PREFETCHT0 1088(SI)
	SHUFFLE128
	JGE     ahead

	ADDQ $(128+1024+128), CX

near:
	SUBQ $128, CX
	JLT  few

many:
	SHUFFLE128
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
	TESTQ   R10, R10
	JEQ     end
	VMOVDQU Y6, (R10)

end:
	VMOVDQU Y5, (DX)
	VZEROUPPER
	RET
