//! The command in a terminal of 80 columns and 24 lines, with keys that are pressed when it has printed something.

use std::process::Command;

use meshwork_test_servers::servers::{Tool, need};
use serde_json::json;

use super::{Done, Running};

/// Runs a command in a terminal: for each pair of a text and keys it waits for the text, and presses the keys. `columns 40`
/// gives the terminal another width. What Ctrl-Z has stopped goes on.
const SCRIPT: &str = r#"
import fcntl, json, os, pty, signal, struct, sys, termios
steps, command = json.loads(sys.argv[1]), sys.argv[2:]
def size(of, columns):
    fcntl.ioctl(of, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
def press(keys):
    if keys.startswith("columns "):
        return size(terminal, int(keys.split()[1]))
    os.write(terminal, keys.encode())
    if keys == "\x1a":
        os.waitpid(child, os.WUNTRACED)
        os.kill(child, signal.SIGCONT)
child, terminal = pty.fork()
if child == 0:
    size(0, int(os.environ.get("PTY_COLUMNS", "80")))
    os.execv(command[0], command)
seen = b""
while True:
    try:
        read = os.read(terminal, 65536)
    except OSError:
        break
    if not read:
        break
    sys.stdout.buffer.write(read)
    seen += read
    while steps and steps[0][0].encode() in seen:
        text, keys = steps.pop(0)
        seen = seen.split(text.encode(), 1)[1]
        press(keys)
sys.stdout.flush()
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) % 256)
"#;

/// Runs the command to its end; its stdout has all that the terminal got. None if there is no Python.
pub(crate) fn in_terminal(command: &Command, steps: &[(&str, &str)]) -> Option<Done> {
    let mut driver = Command::new(need(Tool::Python)?);
    driver.env_clear().current_dir(command.get_current_dir()?);
    driver.env("TERM", "xterm");
    for (name, value) in command.get_envs() {
        driver.env(name, value?);
    }
    driver.args(["-c", SCRIPT, &json!(steps).to_string()]);
    driver.arg(command.get_program()).args(command.get_args());
    Some(Running::start(driver).ended())
}
