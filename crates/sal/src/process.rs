//! Module `process`: commands, and the processes that the script can see.

mod command;
mod list;

use rhai::{Array, Dynamic, Engine, Map};

use crate::answer::{Answer, thrown};
pub(crate) use command::CommandBuilder;
use command::CommandResult;
use list::ProcessInfo;

pub(crate) fn register(engine: &mut Engine) {
    engine
        .register_type_with_name::<CommandResult>("CommandResult")
        .register_get("stdout", |result: &mut CommandResult| result.stdout.clone())
        .register_get("stderr", |result: &mut CommandResult| result.stderr.clone())
        .register_get("success", |result: &mut CommandResult| result.code == 0)
        .register_get("code", |result: &mut CommandResult| result.code);
    engine
        .register_type_with_name::<ProcessInfo>("ProcessInfo")
        .register_get("pid", |process: &mut ProcessInfo| process.pid)
        .register_get("name", |process: &mut ProcessInfo| process.name.clone())
        .register_get("memory", |process: &mut ProcessInfo| process.memory)
        .register_get("cpu", |process: &mut ProcessInfo| process.cpu);
    engine
        .register_type_with_name::<CommandBuilder>("CommandBuilder")
        .register_fn("run", CommandBuilder::new)
        .register_fn("silent", |builder: CommandBuilder| builder.silent(true))
        .register_fn("ignore_error", |builder: CommandBuilder| builder.die(false))
        .register_fn("log", |builder: CommandBuilder| builder.log(true))
        .register_fn("execute", |builder: CommandBuilder| ran(&builder));
    engine.register_fn("run_command", |text: &str| ran(&CommandBuilder::new(text)));
    engine.register_fn("run_silent", |text: &str| {
        ran(&CommandBuilder::new(text).silent(true))
    });
    engine.register_fn("run", with_options);
    engine.register_fn("which", |name: &str| {
        let found = which::which(name).ok();
        found.map_or(Dynamic::UNIT, |path| {
            path.to_string_lossy().into_owned().into()
        })
    });
    engine.register_fn("kill", |pattern: &str| listed(list::kill(pattern)));
    engine.register_fn("process_list", |pattern: &str| -> Answer<Array> {
        let processes = listed(list::all(pattern))?;
        Ok(processes.into_iter().map(Dynamic::from).collect())
    });
    engine.register_fn("process_get", |pattern: &str| listed(list::one(pattern)));
}

/// Runs a command.
pub(crate) fn ran(builder: &CommandBuilder) -> Answer<CommandResult> {
    let ran = builder.execute();
    ran.map_err(|error| thrown(format_args!("Run error: {error}")))
}

fn listed<T>(done: Result<T, list::ProcessError>) -> Answer<T> {
    done.map_err(|error| thrown(format_args!("Process error: {error}")))
}

/// Runs a command with the options `silent`, `die` and `log`.
fn with_options(text: &str, options: Map) -> Answer<CommandResult> {
    let option = |name: &str, usual: bool| {
        let given = options.get(name).and_then(|value| value.as_bool().ok());
        given.unwrap_or(usual)
    };
    let builder = CommandBuilder::new(text)
        .silent(option("silent", false))
        .die(option("die", true))
        .log(option("log", false));
    ran(&builder)
}
