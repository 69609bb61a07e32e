package config_test

import _ "tessera/baselines" // which the shipped models name; the tests of package config itself cannot import it
