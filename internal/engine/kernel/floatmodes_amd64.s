#include "textflag.h"

// func floatModes() uint32
TEXT ·floatModes(SB), NOSPLIT, $0-4
	STMXCSR ret+0(FP)
	RET

// func setFloatModes(modes uint32)
TEXT ·setFloatModes(SB), NOSPLIT, $0-4
	LDMXCSR modes+0(FP)
	RET
