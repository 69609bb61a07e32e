#include "textflag.h"

// func floatModes() uint32
TEXT ·floatModes(SB), NOSPLIT, $0-4
	MOVD FPCR, R0
	MOVW R0, ret+0(FP)
	RET

// func setFloatModes(modes uint32)
TEXT ·setFloatModes(SB), NOSPLIT, $0-4
	MOVWU modes+0(FP), R0
	MOVD R0, FPCR
	RET
