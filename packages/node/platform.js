// The package with the files of this platform: the native module and the command.

"use strict";

const { MeshworkError } = require("./errors.js");

const PACKAGE = `meshwork-${process.platform}-${process.arch}${process.platform === "linux" ? "-gnu" : ""}`;

/** Returns the path of a file of the package of this platform. */
function part(file) {
  try {
    return require.resolve(`${PACKAGE}/${file}`);
  } catch {
    throw new MeshworkError(
      `the package ${PACKAGE} is not installed: install it, or give the App the URL of an API (http://…) instead of a store`,
    );
  }
}

module.exports = { part };
