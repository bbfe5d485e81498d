import test from "node:test";

import { tests } from "./tests_of_shop.mjs";

tests(test);
