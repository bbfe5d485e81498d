//! Lets the linker leave the functions of Node.js to the process that loads the module.

fn main() {
    napi_build::setup();
}
