package data

func init() {
	Registry.Register("mnist", "60,000 training and 10,000 test images of handwritten digits, grey, 28x28 pixels (LeCun); downloaded", MNIST)
}

// MNIST returns the set of LeCun, Cortes and Burges, "The MNIST database of handwritten digits" (1998): 60,000 training and
// 10,000 test images of 28x28 grey bytes.
func MNIST() Source { set := mnist; return &set }

// mnist contains checksums of the files whose uncompressed MD5 sums are 6bbc9ace898e44ae57da46a324031adb,
// a25bea736e30d166cdddb491f175f624, 2646ac647ad5339dbf082846283269ea and 27ae3e4e09519cfbb04c329615203637.
var mnist = published{
	name: "mnist",
	mirrors: []string{
		"https://ossci-datasets.s3.amazonaws.com/mnist/",
		"https://storage.googleapis.com/cvdf-datasets/mnist/",
	},
	files: idxFiles([4]string{
		trainImages: "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
		trainLabels: "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
		testImages:  "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
		testLabels:  "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
	}),
	classes: []string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"},
}
