package table

import (
	"slices"
	"strings"
)

// synonyms lists, under each valid name, the names that other programs or papers use for the same thing, in lower case
// without separators. A synonym has the same meaning, not a similar spelling, because [Nearest] already compares the
// letters.
var synonyms = map[string]string{
	// losses
	"mae":           "l1loss absoluteerror meanabsoluteerror",
	"mse":           "mseloss squarederror meansquarederror l2loss frobenius euclidean reconstruction rmse",
	"bce":           "binarycrossentropy bceloss bcewithlogits logloss",
	"cross_entropy": "categoricalcrossentropy sparsecategoricalcrossentropy nllloss crossentropyloss softmaxloss",
	"huber":         "smoothl1 smoothl1loss huberloss",
	"ssim":          "dssim structuralsimilarity ssimloss",
	"kl":            "sparsity sparsitypenalty klsparsity",
	"l1":            "lasso l1norm l1penalty activityregularizer",
	"l2":            "ridge tikhonov l2norm",
	"weight_decay":  "l2regularization l2reg kernelregularizer",
	"nt_xent":       "simclr infonce contrastive contrastiveloss",
	"hoyer":         "sparseness",
	// layers and activations
	"dense":             "fc fullyconnected mlp innerproduct affine",
	"conv2d":            "conv convolution convolution2d",
	"conv2d_transpose":  "convtranspose2d convtranspose transposedconv deconv deconvolution deconv2d",
	"max_pool":          "maxpool2d maxpooling2d",
	"avg_pool":          "avgpool2d averagepooling2d averagepooling meanpool",
	"global_pool":       "globalaveragepooling2d globalmaxpooling2d globalavgpool adaptiveavgpool2d gap",
	"upsample":          "upsampling2d unpool unpooling resize interpolate",
	"upsample_bilinear": "bilinear upsamplingbilinear2d",
	"conv1d":            "convolution1d temporalconvolution",
	"group_norm":        "groupnormalization gn",
	"batch_norm":        "batchnormalization batchnorm1d batchnorm2d bn",
	"layer_norm":        "layernormalization ln",
	"instance_norm":     "instancenormalization",
	"residual":          "resblock residualblock shortcut add",
	"concat":            "skip skipconnection concatenate unet densenet",
	"attention":         "selfattention multiheadattention mha transformer",
	"recurrent":         "rnn gru lstm simplernn bidirectional",
	"take_token":        "meantokens meantoken tokenmean pooltokens averagetokens globalaveragepooling1d",
	"gaussian":          "sampling reparameterize reparameterization reparametrization",
	"top_k":             "ksparse winnertakeall wta topk",
	"batch_top_k":       "batchtopk btopk",
	"group_max":         "groupmax maxout",
	"prefix":            "matryoshka nested",
	"jump_relu":         "jumprelu",
	"gated":             "gatedsae",
	"aux_k":             "auxk auxiliary",
	"unrolled":          "lista unrollednmf",
	"masking_noise":     "denoising",
	"silu":              "swish",
	"sigmoid":           "logistic",
	"relu":              "rectifier relu6",
	"linear":            "identity",
	"leaky_relu":        "lrelu",
	"prelu":             "parametricrelu",
	"hard_sigmoid":      "hardsigmoid",
	// constraints
	"nonneg":     "nonnegative nonnegativity positive positivity",
	"unit_norm":  "unitnorm normalize normalise normalized sphere",
	"box":        "clip clamp bounds interval minmax",
	"max_norm":   "maxnorm",
	"orthogonal": "orthonormal orthogonality stiefel",
	"simplex":    "probability stochastic sumtoone",
	// optimizers and schedules
	"sgd":       "momentum nesterov gd gradientdescent",
	"lbfgs":     "bfgs lbfgsb",
	"cosine":    "cosineannealing cosinedecay",
	"step":      "steplr multistep piecewise",
	"plateau":   "reducelronplateau reduceonplateau",
	"one_cycle": "onecyclelr superconvergence",
	// baselines
	"kmeans":     "lloyd clustering vectorquantization",
	"pca":        "svd truncatedsvd karhunenloeve",
	"nmf":        "nonnegativematrixfactorization nnmf",
	"dictionary": "sparsecoding dictionarylearning ksvd",
	// initial values
	"glorot_uniform": "xavieruniform xavier glorot",
	"glorot_normal":  "xaviernormal",
	"he_normal":      "kaimingnormal kaiming he",
	"he_uniform":     "kaiminguniform",
	// data sets
	"png":           "images imagefolder folder jpg jpeg",
	"npy":           "numpy array",
	"fashion-mnist": "fmnist",
	// keys
	"file":          "path filename folder dir directory data samples samplesfile",
	"test":          "testfolder testpath testfile testdata testsamples",
	"test_images":   "testpath testfile testfolder testdata testsamples",
	"kernel":        "kernelsize ksize filtersize windowsize poolsize size",
	"stride":        "strides",
	"filters":       "nfilters outchannels numfilters units channels",
	"units":         "nunits hiddenunits hidden outfeatures latentdim neurons outputs outputdim",
	"components":    "units ncomponents rank nclusters clusters k",
	"activation":    "activationfunction nonlinearity",
	"bias":          "usebias",
	"init":          "kernelinitializer initializer initialization",
	"learning_rate": "lr eta stepsize",
	"epochs":        "nepochs numepochs",
	"iterations":    "niter maxiter maxiterations",
	"batch":         "batchsize bs minibatch minibatchsize",
	"seed":          "randomstate randomseed",
	"patience":      "earlystopping",
	"weight":        "coefficient coef lambda lossweight beta",
	"target":        "rho sparsitytarget",
	"decay":         "weightdecay",
	"slope":         "negativeslope",
	"rate":          "probability droprate dropoutrate p",
	"extends":       "inherits inherit base parent",
	"about":         "description comment",
	"dataset":       "data",
	"validation":    "validationsplit valsplit",
	"clip_norm":     "gradclip clipgradnorm gradientclipping",
	"average":       "ema swa",
	"least":         "mincount mindf minfreq minfrequency mincf",
	"most":          "maxdf maxfreq",
	"factor":        "scale scalefactor size",
	"stddev":        "sigma std stdev",
}

// byMeaning returns the valid name with the same meaning as name.
func byMeaning(name string, valid []string) (string, bool) {
	if len(name) > mostCompared {
		return "", false
	}
	plain := strings.Map(func(r rune) rune {
		if strings.ContainsRune("_- .", r) {
			return -1
		}
		return r
	}, strings.ToLower(name))
	for _, v := range valid {
		if slices.Contains(strings.Fields(synonyms[v]), plain) {
			return v, true
		}
	}
	return "", false
}
