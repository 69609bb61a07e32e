package config_test

import _ "tessera/baselines" // Shipped models use baselines. The tests of package config itself cannot import package baselines.
