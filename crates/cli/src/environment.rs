//! Secrets of the environment, hidden from scripts. `/proc/PID/environ` shows the original environment as long as the
//! program runs. A process that was started with secrets therefore executes itself again without them (same pid), and
//! passes them on in an anonymous file.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use meshwork_model::secret::is_secret;
use rustix::fs::{MemfdFlags, memfd_create};
use rustix::io::{Errno, FdFlags, fcntl_setfd};
use rustix::process::{DumpableBehavior, set_dumpable_behavior};

use crate::out::note;

/// Variable with the pid and the descriptor of a handover. A child that inherits the variable has another pid, and
/// ignores it.
const HANDOVER: &str = "MESHWORK_HANDOVER";
/// Name of the anonymous file in lists of descriptors.
const FILE: &str = "meshwork-environment";
/// Path of this program, valid also after its file was replaced or removed.
const PROGRAM: &str = "/proc/self/exe";
/// Name of the process in the kernel; it would be `exe` after the restart.
const NAME: &std::ffi::CStr = c"meshwork";
/// Secret variables whose names do not show it.
const SECRET: [&str; 2] = [
    "OTEL_EXPORTER_OTLP_HEADERS",
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS",
];

type Variables = BTreeMap<OsString, OsString>;

/// Secrets that were removed from the environment.
static SECRETS: OnceLock<Variables> = OnceLock::new();

/// Returns the value of an environment variable, including removed secrets.
pub(crate) fn var_os(name: impl AsRef<OsStr>) -> Option<OsString> {
    secret(name.as_ref())
        .map(OsStr::to_owned)
        .or_else(|| env::var_os(name))
}

/// Same as [`var_os`], if the value is text.
pub(crate) fn var(name: &str) -> Option<String> {
    var_os(name)?.into_string().ok()
}

/// Returns the value of a secret that was removed from the environment.
pub(crate) fn secret(name: &OsStr) -> Option<&'static OsStr> {
    SECRETS.get()?.get(name).map(OsString::as_os_str)
}

/// Denies other processes of the same user access to this one's memory, and removes the secrets from its environment.
/// Call it before threads are started and descriptors opened.
pub(crate) fn guard() {
    // Read once per process, from a file that an ordinary user cannot open afterwards with Linux before 6.4.
    let _ = rustix::param::page_size();
    let guarded = set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(io::Error::from);
    let guarded = guarded.and_then(|()| take_secrets());
    if let Err(error) = guarded {
        note(format_args!(
            "warning: scripts may be able to read the secrets of this environment: {error}"
        ));
    }
}

fn take_secrets() -> io::Result<()> {
    if let Some(secrets) = take_over()? {
        // Set nowhere else.
        let _ = SECRETS.set(secrets);
        rustix::thread::set_name(NAME)?;
        return Ok(());
    }
    let secrets: Variables = env::vars_os()
        .filter(|(name, value)| holds_secret(name, value))
        .collect();
    // Without `/proc`, no process can read the environment of another one.
    if secrets.is_empty() || !Path::new(PROGRAM).exists() {
        return Ok(());
    }
    Err(start_anew(&secrets))
}

fn holds_secret(name: &OsStr, value: &OsStr) -> bool {
    let name = name.to_string_lossy();
    is_secret(&name) || SECRET.contains(&&*name) || holds_password(&value.to_string_lossy())
}

/// Returns true for a URL with a password, or a list of URLs with one.
pub(crate) fn holds_password(text: &str) -> bool {
    let mut urls = text.split("://");
    // The scheme of the first URL.
    urls.next();
    urls.any(|url| {
        let login = url.split(['/', '?', '#']).next().unwrap_or_default();
        let login = login.rsplit_once('@').map(|(login, _)| login);
        let login = login.and_then(|login| login.split_once(':'));
        let mut options = url.split(['?', '&']).skip(1);
        login.is_some_and(|(_, password)| !password.is_empty())
            || options.any(|option| {
                let name = option.split('=').next().unwrap_or_default();
                name == "pass" || is_secret(name)
            })
    })
}

/// Executes the same program with the same arguments and without these variables. Returns only on failure.
fn start_anew(secrets: &Variables) -> io::Error {
    let handed_over = (|| -> io::Result<File> {
        // The descriptor stays open across exec.
        let mut file = anonymous_file()?;
        for (name, value) in secrets {
            let line = [name.as_bytes(), b"=", value.as_bytes(), b"\0"];
            file.write_all(&line.concat())?;
        }
        Ok(file)
    })();
    let file = match handed_over {
        Ok(file) => file,
        Err(error) => return error,
    };
    let mut arguments = env::args_os();
    let mut command = Command::new(PROGRAM);
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    command.args(arguments);
    for name in secrets.keys() {
        command.env_remove(name);
    }
    let descriptor = file.as_raw_fd();
    command.env(HANDOVER, format!("{}:{descriptor}", std::process::id()));
    command.exec()
}

/// Returns a file that has no name, and that a program which this one executes inherits.
fn anonymous_file() -> io::Result<File> {
    match memfd_create(FILE, MemfdFlags::empty()) {
        // In a sandbox without a control group that counts it.
        Err(Errno::NOSYS) => {
            let file = tempfile::Builder::new()
                .prefix(FILE)
                .tempfile()?
                .into_file();
            fcntl_setfd(&file, FdFlags::empty())?;
            Ok(file)
        }
        made => Ok(made?.into()),
    }
}

/// Reads the secrets of a handover, if there was one.
fn take_over() -> io::Result<Option<Variables>> {
    let place = env::var(HANDOVER).ok();
    let place = place.as_deref().and_then(|place| place.split_once(':'));
    let descriptor = match place {
        Some((pid, descriptor)) if pid == std::process::id().to_string() => descriptor,
        _ => return Ok(None),
    };
    let path = format!("/proc/self/fd/{descriptor}");
    let is_ours = fs::read_link(&path).is_ok_and(|name| name.to_string_lossy().contains(FILE));
    let number: i32 = match descriptor.parse() {
        Ok(number) if is_ours => number,
        _ => return Ok(None),
    };
    let mut text = Vec::new();
    File::open(&path)?.read_to_end(&mut text)?;
    nix::unistd::close(number).map_err(io::Error::from)?;
    let lines = text.split(|byte| *byte == 0).filter_map(|line| {
        let middle = line.iter().position(|byte| *byte == b'=')?;
        let part = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        Some((part(&line[..middle]), part(&line[middle + 1..])))
    });
    Ok(Some(lines.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_with_secrets_are_known_by_their_names_and_their_values() {
        let holds = |name: &str, value: &str| holds_secret(OsStr::new(name), OsStr::new(value));
        for (name, value) in [
            ("MESHWORK_GATEWAY_TOKEN", "a"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "a=b"),
            ("REDIS_URL", "redis://user:secret@host:6379/0"),
            ("REDIS_URL", "redis+sentinel://:p@ss@a,b/main"),
            ("REDIS_URL", "unix:///run/redis.sock?db=1&user=u&pass=p"),
            ("REDIS_URL", "redis+sentinel://a/main?sentinel_password=p"),
            ("SERVERS", "redis://a redis://:b@c"),
        ] {
            assert!(holds(name, value), "{name}={value}");
        }
        for (name, value) in [
            ("REDIS_URL", "redis://host:6379/0"),
            ("REDIS_URL", "redis://user@host/a:b@c"),
            ("REDIS_URL", "unix:///run/redis.sock?db=1&wait_replicas=1"),
            ("PATH", "/bin:/usr/bin"),
            ("MAIL", "a:b@c"),
        ] {
            assert!(!holds(name, value), "{name}={value}");
        }
    }
}
