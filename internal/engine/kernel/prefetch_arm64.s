#include "textflag.h"

// func prefetch(first *byte, lines int)
TEXT ·prefetch(SB), NOSPLIT, $0-16
	MOVD first+0(FP), R0
	MOVD lines+8(FP), R1

loop:
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	SUBS $1, R1
	BNE  loop
	RET

// func prefetchOwned(first *float32, lines int)
TEXT ·prefetchOwned(SB), NOSPLIT, $0-16
	MOVD first+0(FP), R0
	MOVD lines+8(FP), R1

loop:
	PRFM (R0), PSTL1KEEP
	ADD  $64, R0
	SUBS $1, R1
	BNE  loop
	RET
