import { test } from "vitest";

import { tests } from "./tests_of_shop.mjs";

tests(test);
