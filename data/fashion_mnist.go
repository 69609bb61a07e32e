package data

func init() {
	Registry.Register("fashion-mnist", "60,000 training and 10,000 test images of clothes, grey, 28x28 pixels, 10 classes (Zalando); downloaded", FashionMNIST)
}

// FashionMNIST returns the set of Xiao, Rasul and Vollgraf, "Fashion-MNIST: a novel image dataset for benchmarking machine
// learning algorithms" (2017): 60,000 training and 10,000 test images of 28x28 grey bytes.
func FashionMNIST() Source { set := fashionMNIST; return &set }

// fashionMNIST contains checksums of the files whose uncompressed MD5 sums are f4a8712d7a061bf5bd6d2ca38dc4d50a,
// 9018921c3c673c538a1fc5bad174d6f9, 8181f5470baa50b63fa0f6fddb340f0a and 15d484375f8d13e6eb1aabb0c3f46965.
var fashionMNIST = published{
	name: "fashion-mnist",
	mirrors: []string{
		"http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
		"https://github.com/zalandoresearch/fashion-mnist/raw/master/data/fashion/",
	},
	files: idxFiles([4]string{
		trainImages: "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888",
		trainLabels: "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9",
		testImages:  "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b",
		testLabels:  "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34",
	}),
	classes: []string{"T-shirt/top", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "ankle boot"},
}
