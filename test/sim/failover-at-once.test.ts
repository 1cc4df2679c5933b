// The model check of the assignment protocol: the worlds in which everything goes wrong at once.

import { EVERYTHING_AT_ONCE } from './failover/scenarios.ts';
import { testWorlds } from './failover/worlds.ts';

testWorlds([EVERYTHING_AT_ONCE]);
