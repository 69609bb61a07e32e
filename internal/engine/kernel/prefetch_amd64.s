#include "textflag.h"

// func prefetch(first *byte, lines int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVQ first+0(FP), AX
	MOVQ lines+8(FP), CX
next:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	DECQ CX
	JG   next
	RET

// func prefetchOwned(first *float32, lines int)
TEXT ·prefetchOwned(SB), NOSPLIT, $0-16
	MOVQ first+0(FP), AX
	MOVQ lines+8(FP), CX
next:
	BYTE $0x0f; BYTE $0x0d; BYTE $0x08 // PREFETCHW (AX), which the assembler does not know
	ADDQ $64, AX
	DECQ CX
	JG   next
	RET
