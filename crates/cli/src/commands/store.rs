//! `meshwork store`.

use std::path::PathBuf;

use meshwork::Target;
use meshwork_broker::conn::{StoreCheck, check_store, repair_store};
use serde::Serialize;

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::note;

/// Check or repair the log of a data directory that no process uses
#[derive(Debug, clap::Subcommand)]
pub(crate) enum StoreCommand {
    /// Read the whole log and its checksums, and print what is wrong; exit code 1 if anything is
    ///
    /// Changes nothing.
    Check,
    /// Cut the log off before its first fault, and move checksums that do not fit aside
    ///
    /// Without --yes it prints what it would cut, and changes nothing. What is cut off is kept in a file beside the log.
    Repair {
        /// Cut
        #[arg(long)]
        yes: bool,
    },
}

#[derive(Debug, Serialize)]
struct Line<'a> {
    bytes: u64,
    transactions: u64,
    checked: u64,
    faults: Vec<&'a str>,
    cut_from: Option<u64>,
    repaired: bool,
    kept_in: Option<PathBuf>,
}

impl StoreCommand {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let Target::Directory(dir) = context.place.target()? else {
            return Err(CommandError::usage(
                "a server has its own tools, as redis-check-aof: leave out --redis and REDIS_URL",
            ));
        };
        let cuts = matches!(self, Self::Repair { yes: true });
        let work = move || match cuts {
            true => repair_store(&dir).map(|done| (done.check, done.kept)),
            false => check_store(&dir).map(|check| (check, None)),
        };
        let (check, kept) = tokio::task::spawn_blocking(work)
            .await
            .map_err(|source| CommandError::new(Exit::SYSTEM, source))?
            .map_err(CommandError::usage)?;
        let is_whole = check.faults.is_empty();
        if context.out.is_json() {
            context.out.json(&Line {
                bytes: check.bytes,
                transactions: check.transactions,
                checked: check.checked,
                faults: check.faults.iter().map(|fault| &*fault.what).collect(),
                cut_from: check.cut(),
                repaired: cuts && !is_whole,
                kept_in: kept,
            })?;
        } else {
            tell(&check, context)?;
            if !is_whole {
                note(self.remedy(&check, kept));
            }
        }
        Ok(match is_whole || cuts {
            true => Exit::DONE,
            false => Exit::FAILED,
        })
    }

    fn remedy(&self, check: &StoreCheck, kept: Option<PathBuf>) -> String {
        let part = check.cut().map(|from| {
            let bytes = check.bytes.saturating_sub(from);
            format!("{bytes} bytes, from byte {from} on")
        });
        match (self, part, kept) {
            (Self::Check, ..) => {
                "restore a backup, or see what `meshwork store repair` would cut".to_owned()
            }
            (Self::Repair { yes: true }, Some(part), Some(kept)) => {
                format!("cut {part}; they are kept in {}", kept.display())
            }
            (Self::Repair { yes: true }, ..) => {
                "nothing was cut; the checksums are moved aside, and begin with the next write".to_owned()
            }
            (Self::Repair { yes: false }, Some(part), _) => {
                format!("would cut {part}: repeat it with --yes, or restore a backup")
            }
            (Self::Repair { yes: false }, None, _) => {
                "would cut nothing, and move the checksums aside: repeat it with --yes, or restore a backup".to_owned()
            }
        }
    }
}

fn tell(check: &StoreCheck, context: &mut App) -> Result<(), CommandError> {
    context.out.line(format_args!(
        "log: {} bytes, {} transactions; {} bytes agree with their checksums",
        check.bytes, check.transactions, check.checked
    ))?;
    for fault in &check.faults {
        context.out.line(format_args!("fault: {}", fault.what))?;
    }
    match check.faults.is_empty() {
        true if check.bytes > 0 && check.checked == 0 => {
            context
                .out
                .line("no faults, but no checksums: changed values cannot be found")?;
        }
        true => context.out.line("no faults")?,
        false => {}
    }
    Ok(())
}
