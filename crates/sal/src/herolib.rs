//! Names of herolib 0.3, the successor of SAL, for functions that SAL has too. The table lists the others, which are refused.

use std::env;
use std::fs;
use std::path::Path;

use rhai::{Engine, EvalAltResult};

use crate::answer::{Answer, thrown};
use crate::process::{self, CommandBuilder};
use crate::{net, os};

/// Most bytes of a padded or repeated text; the engine bounds values too, but only when they exist.
const MAX_TEXT: usize = 1 << 20;

pub(crate) fn register(engine: &mut Engine) -> Result<(), Box<EvalAltResult>> {
    engine.register_fn("net_tcp_check", net::tcp_check);
    engine.register_fn("net_tcp_ping", net::ping);
    engine.register_fn("net_http_check", net::http_check);
    engine.register_fn("http_ping", net::http_check);
    engine.register_fn("net_http_status", net::http_status);
    engine.register_fn("net_ssh_ping", |host: &str, _user: &str| {
        net::tcp_check(host, 22)
    });
    engine.register_fn("execute", CommandBuilder::new);
    engine.register_fn("run", |builder: CommandBuilder| process::ran(&builder));
    engine.register_fn("env", CommandBuilder::env);
    for name in ["ensure_dir", "dir_ensure"] {
        engine.register_fn(name, os::make_folder);
    }
    engine.register_fn("env_get", |name: &str| env::var(name).unwrap_or_default());
    engine.register_fn("is_symlink", |path: &str| Path::new(path).is_symlink());
    engine.register_fn("symlink_target", |path: &str| -> Answer<String> {
        let target = fs::read_link(path);
        let target = target.map_err(|error| thrown(format_args!("{path}: {error}")))?;
        Ok(target.to_string_lossy().into_owned())
    });
    engine.register_fn("replacer_new", sal_text::rhai::text_replacer_new);
    engine.register_fn("template_open", sal_text::rhai::template_builder_open);
    engine.register_fn("pad_left", |text: &str, width: i64| {
        padded(text, width, true)
    });
    engine.register_fn("pad_right", |text: &str, width: i64| {
        padded(text, width, false)
    });
    engine.register_fn("repeat", |text: &str, times: i64| -> Answer<String> {
        let times = usize::try_from(times).unwrap_or(0);
        bounded(text.len().saturating_mul(times))?;
        Ok(text.repeat(times))
    });
    Ok(())
}

fn bounded(size: usize) -> Answer<()> {
    match size > MAX_TEXT {
        true => Err(thrown(format_args!(
            "the text would have more than {MAX_TEXT} bytes"
        ))),
        false => Ok(()),
    }
}

/// Returns a text with blanks before or behind it.
fn padded(text: &str, width: i64, before: bool) -> Answer<String> {
    let width = usize::try_from(width).unwrap_or(0);
    bounded(width)?;
    Ok(match before {
        true => format!("{text:>width$}"),
        false => format!("{text:<width$}"),
    })
}
