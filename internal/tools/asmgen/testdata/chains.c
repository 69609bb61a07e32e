// The formulas of some kernels, for the comparison of asmgen -predict with the vector code of a compiler.
#define F float *restrict
#define EACH for (long i = 0; i < n; i++)
typedef union { float f; int i; unsigned u; } word;
static inline float fma_(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
static inline float bits(int i) { word w; w.i = i; return w.f; }
static inline int whole(float x) { return (int)__builtin_roundevenf(x); }
static inline float power(int n) { return bits((n + 127) << 23); }
static inline float larger(float x, float y) { return x > y ? x : y; }
static inline float smaller(float x, float y) { return x < y ? x : y; }

void Add(F d, F a, F b, long n) { EACH d[i] = a[i] + b[i]; }
void MulScalar(F d, F a, float s, long n) { EACH d[i] = a[i] * s; }
void MulAdd(F d, F a, F b, F c, long n) { EACH d[i] = fma_(a[i], b[i], c[i]); }
void Gt(F d, F a, F b, long n) { EACH d[i] = a[i] > b[i] ? 1 : 0; }
void Max(F d, F a, F b, long n) { EACH { float m = larger(a[i], b[i]); d[i] = a[i] != a[i] ? a[i] : m; } }
void Clamp(F d, F a, float s, float t, long n) { EACH d[i] = smaller(t, larger(s, a[i])); }
void LeakyReLUGrad(F d, F a, F b, float s, long n) { EACH d[i] = b[i] > 0 ? a[i] : a[i] * s; }

static inline float exprest(float x, float *n) {
	*n = __builtin_roundevenf(x * 1.4426950408889634f);
	float r = fma_(-*n, 0.693147182f, x);
	r = fma_(-*n, -1.90465421e-9f, r);
	float q = 0.00138825152132f;
	q = fma_(q, r, 0.0083665471194f), q = fma_(q, r, 0.0416672007304f), q = fma_(q, r, 0.166665434244f), q = fma_(q, r, 0.499999981496f);
	return fma_(q * r, r, r);
}
static inline float expbelow(float x) {
	float n, rest = exprest(larger(-104, x), &n);
	int w = (int)n, half = w >> 1;
	return (rest + 1) * power(half) * power(w - half);
}
void Exp(F d, F a, long n) { EACH d[i] = expbelow(smaller(89, a[i])); }
void Sigmoid(F d, F a, long n) {
	EACH {
		float e = expbelow(-__builtin_fabsf(a[i]));
		d[i] = (a[i] < 0 ? e : 1) / (e + 1);
	}
}
void Tanh(F d, F a, long n) {
	EACH {
		float m = -__builtin_fabsf(a[i]), k, rest = exprest(larger(-30, m + m), &k), p = power((int)k);
		float t = fma_(p, rest, p - 1);
		d[i] = __builtin_copysignf(__builtin_fabsf(t) / (t + 2), a[i]);
	}
}
void Log(F d, F a, long n) {
	static const float c[] = {-0.128916850386f, 0.139844363494f, -0.12184261017f, 0.140058691037f, -0.166804873483f, 0.200104059112f, -0.24999797673f, 0.333332159826f, -0.5f};
	EACH {
		word x;
		x.f = a[i] < 0x1p-126f ? a[i] * 0x1p23f : a[i];
		int e = (x.i - 0x3f2aaaab) >> 23;
		float f = bits(x.i - (e << 23)) - 1, k = (float)e + (a[i] < 0x1p-126f ? -23 : 0), y = c[0];
		for (int j = 1; j < 9; j++) y = fma_(y, f, c[j]);
		y = fma_(y, f * f, k * -1.90465421e-9f);
		y = fma_(k, 0.693147182f, y + f);
		y = a[i] == __builtin_inff() ? __builtin_inff() : y;
		y = a[i] == 0 ? -__builtin_inff() : y;
		d[i] = a[i] >= 0 ? y : __builtin_nanf("");
	}
}
void adam(F w, F g, F m, F v, float b1, float r1, float b2, float r2, float step, float scale, float eps, float decay, long n) {
	EACH {
		float d = fma_(decay, w[i], g[i]), p = fma_(r1, d, b1 * m[i]), q = fma_(r2 * d, d, b2 * v[i]);
		w[i] = w[i] - step * p / fma_(__builtin_sqrtf(q), scale, eps);
		m[i] = p, v[i] = q;
	}
}
#pragma clang fp reassociate(on)
float Sum(F a, long n) { float s = 0; EACH s += a[i]; return s; }
float Dot(F a, F b, long n) { float s = 0; EACH s += a[i] * b[i]; return s; }
