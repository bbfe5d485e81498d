//! Command line: the commands, and their global options.

use std::io::{self, Write};

use clap::builder::Resettable;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser};
use meshwork_model::name::Namespace;
use tokio::sync::{OnceCell, mpsc};

use crate::app::App;
use crate::args::location::DataLocation;
use crate::args::protocol;
use crate::args::protocol::CommandLine;
use crate::commands::Command;
use crate::environment;
use crate::error::CommandError;
use crate::exit::{self, Exit};
use crate::help;
use crate::out::{
    ListFormat, Out, OutError, format_of, note, printable, show_raw, visible, with_cut_words,
    with_format,
};
use crate::telemetry::logging;
use crate::telemetry::logging::{LogFormat, Logging};
use crate::words;

/// Run scripts as jobs, on Redis or without a server
#[derive(Debug, Parser)]
#[command(name = "meshwork", bin_name = "meshwork", version, after_help = format!("{}\n\n{}", words::HELP, exit::HELP), max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    place: DataLocation,
    /// First part of every key; on a Redis Cluster in braces, as '{hero}', so that all keys share a slot
    #[arg(
        long,
        value_name = "NAME",
        env = "MESHWORK_NAMESPACE",
        default_value = "hero",
        global = true,
        help_heading = "Location of the data"
    )]
    namespace: Namespace,
    /// Print JSON
    #[arg(long, global = true, help_heading = "Output")]
    json: bool,
    /// Let a terminal get the output of scripts unchanged; without it, control characters are replaced there
    #[arg(long, global = true, help_heading = "Output")]
    raw: bool,
    /// Log more on stderr; twice: everything. RUST_LOG selects in detail
    #[arg(short, long, action = clap::ArgAction::Count, global = true, help_heading = "Output")]
    verbose: u8,
    /// Format of the log and of messages on stderr: text, or one line of JSON each
    #[arg(
        long,
        value_name = "FORMAT",
        env = "MESHWORK_LOG_FORMAT",
        default_value = "text",
        global = true,
        help_heading = "Output"
    )]
    log_format: LogFormat,
    /// True if the URL was given on the command line, which other users can read.
    #[arg(skip)]
    url_is_visible: bool,
    #[arg(skip)]
    list: Option<ListFormat>,
    /// Names of the command, with a space between.
    #[arg(skip)]
    name: String,
}

impl Cli {
    /// Parses the command line. Prints errors and help, and returns the exit code for them.
    pub(crate) fn read() -> Result<Self, Exit> {
        let line = CommandLine::read(words::expanded(std::env::args_os().collect()));
        let command = with_environment(tree());
        let matches = command.clone().try_get_matches_from(&line.words);
        let read = matches.and_then(|matches| {
            let mut cli = Self::from_arg_matches(&matches)?;
            let is_given = |option| source_of(&matches, option) == Some(ValueSource::CommandLine);
            cli.url_is_visible = is_given("redis");
            match (is_given("redis"), is_given("api")) {
                (true, true) => {
                    let both = "--api and --redis: give one of them";
                    return Err(command.clone().error(ErrorKind::ArgumentConflict, both));
                }
                (true, false) => cli.place.without_api(),
                (false, _) => {}
            }
            cli.name = name_of(&matches);
            cli.list = format_of(&matches);
            cli.json |= cli.list == Some(ListFormat::Json);
            Ok(cli)
        });
        read.map_err(|said| match is_help(&said) {
            true => {
                let command = help::prepared(command, &line);
                let said = command.clone().try_get_matches_from(&line.words).err();
                said.map_or(Exit::DONE, |said| tell(said, &line, command))
            }
            false => tell(said, &line, command),
        })
    }

    /// Starts the log.
    pub(crate) fn log(&self) -> Logging {
        let tells_failures = self.command.tells_failures();
        logging::start(self.log_format, self.verbose, tells_failures)
    }

    /// Runs the command.
    pub(crate) async fn run(self) -> Result<Exit, CommandError> {
        if self.url_is_visible && self.place.has_password() {
            note(
                "warning: other users see the password on the command line; set REDIS_URL instead",
            );
        }
        if self.raw {
            show_raw();
        }
        let mut out = Out::new(self.json);
        out.list = self.list.unwrap_or(ListFormat::Table);
        let remote = self.place.remote(&self.name)?;
        let (fatal, mut ended) = mpsc::unbounded_channel();
        let mut context = App {
            place: self.place,
            remote,
            namespace: self.namespace,
            out,
            verbose: self.verbose > 0,
            entered: None,
            actor: None,
            near_client: OnceCell::new(),
            fatal,
            command_line: tree,
        };
        let exit = tokio::select! {
            exit = Box::pin(self.command.run(&mut context)) => exit?,
            Some(error) = ended.recv() => return Err(error),
        };
        context.out.flush()?;
        Ok(exit)
    }
}

/// Returns all commands and options.
pub(crate) fn tree() -> clap::Command {
    protocol::with_option(words::with_short_forms(with_format(Cli::command())))
}

fn is_help(said: &clap::Error) -> bool {
    let missing = ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand;
    said.kind() == ErrorKind::DisplayHelp || said.kind() == missing
}

/// Prints an error on stderr. Returns the exit code.
pub(crate) fn report(error: &CommandError) -> Exit {
    // The reader closed stdout on purpose, as `head` does.
    if error.exit != Exit::NO_READER {
        note(with_cut_words(&format!("error: {error}")));
        if let Some(hint) = error.hint() {
            note(format_args!("hint: {hint}"));
        }
    }
    error.exit
}

/// Prints clap's text: help on stdout, whose write errors are reported, or an error on stderr.
fn tell(mut said: clap::Error, line: &CommandLine, mut command: clap::Command) -> Exit {
    // A command of another protocol is shown as it was written.
    let as_written = |text: String| match &line.renamed {
        None => text,
        Some(renamed) => renamed.shown(&text),
    };
    if !said.use_stderr() {
        let plain = said.render().to_string();
        let printed = match as_written(plain.clone()) {
            text if text == plain => said.print(),
            text => write!(io::stdout(), "{text}"),
        };
        return match printed.and_then(|()| io::stdout().flush()) {
            Ok(()) => Exit::DONE,
            Err(error) => report(&OutError::from(error).into()),
        };
    }
    // Adds the global options to all commands.
    command.build();
    let hint = words::correct(&mut said, &line.words, &command)
        .or_else(|| protocol::hint(&said, line, &command));
    if said.get(ContextKind::Usage).is_some() {
        let usage = words::usage(&line.words, &command);
        said.insert(ContextKind::Usage, ContextValue::StyledStr(usage));
    }
    make_visible(&mut said);
    let plain = said.render().to_string();
    let text = help::with_short_alternatives(&with_cut_words(&printable(&plain)));
    let text = as_written(text);
    // Without a place to write to, the exit code remains.
    let _ = match hint {
        None if text == plain => said.print(),
        // In one colour.
        None => write!(io::stderr(), "{text}"),
        Some(hint) => {
            let (error, usage) = text.split_at(text.find("\n\nUsage:").unwrap_or(text.len()));
            writeln!(io::stderr(), "{}\n\nhint: {hint}{usage}", error.trim_end())
        }
    };
    Exit::USAGE
}

/// Makes the control characters of arguments visible, which clap's text would leave out.
fn make_visible(said: &mut clap::Error) {
    let shown: Vec<_> = said
        .context()
        .filter_map(|(kind, value)| {
            let shown = match value {
                ContextValue::String(text) => ContextValue::String(visible(text)),
                ContextValue::Strings(texts) => {
                    ContextValue::Strings(texts.iter().map(|text| visible(text)).collect())
                }
                _ => return None,
            };
            Some((kind, shown))
        })
        .collect();
    for (kind, value) in shown {
        said.insert(kind, value);
    }
}

/// Treats an empty environment variable as unset: `${NAME:-}` in a compose file makes such. A secret that was removed
/// from the environment counts as set, and help does not show it.
fn with_environment(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|arg| {
        let secret = arg.get_env().and_then(environment::secret);
        if let Some(secret) = secret.filter(|secret| !secret.is_empty()) {
            return arg.default_value(secret).hide_default_value(true);
        }
        let value = arg.get_env().and_then(std::env::var_os);
        match value.is_some_and(|value| value.is_empty()) {
            true => arg.env(Resettable::Reset),
            false => arg,
        }
    });
    command.mut_subcommands(with_environment)
}

/// Returns the names of the command that was given, with a space between.
fn name_of(matches: &clap::ArgMatches) -> String {
    let (mut here, mut names) = (matches, Vec::new());
    while let Some((name, below)) = here.subcommand() {
        names.push(name);
        here = below;
    }
    names.join(" ")
}

/// Returns the source of a global option's value, before or after the subcommand.
fn source_of(matches: &clap::ArgMatches, option: &str) -> Option<ValueSource> {
    let behind = matches
        .subcommand()
        .and_then(|(_, behind)| source_of(behind, option));
    let here = matches
        .try_contains_id(option)
        .is_ok()
        .then(|| matches.value_source(option))
        .flatten();
    [behind, here]
        .into_iter()
        .flatten()
        .find(|source| *source == ValueSource::CommandLine)
}
