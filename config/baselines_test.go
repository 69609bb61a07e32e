package config_test

import _ "tessera/classical" // Shipped models use baselines. The tests of package config itself cannot import package baselines.
