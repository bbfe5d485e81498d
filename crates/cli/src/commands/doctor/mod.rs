//! `meshwork doctor`.

mod trial;

use meshwork::runtime::sandbox_host;
use meshwork_broker::doctor::{Finding, Level, examine};
use meshwork_model::sandbox::Profile;

use crate::app::App;
#[cfg(feature = "outbox")]
use crate::commands::outbox::{database::OutboxArgs, findings};
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Out, printable};

/// Consequence of a host without namespaces.
const WEAK_SANDBOX: &str = "the profile strict runs nothing here, and standard confines less";
/// Consequence and remedy of a host without control groups.
const UNCOUNTED: &str =
    "calls for memory that no process maps fail in scripts, and buffers of sockets are not counted";
const GROUPS: &str = "run the worker as a unit of systemd with Delegate=yes, or as root";
/// Remedy for a host without namespaces.
const NAMESPACES: &str = "allow user namespaces: user.max_user_namespaces above 0, and the seccomp and AppArmor profiles of \
     a container";

/// Check the server, or the data directory, and print advice. Exits with 1 if there is a problem
///
/// One job is enqueued, claimed, completed and deleted, in the queue meshwork-doctor; nothing else is changed. Looks at 20,000
/// keys, and at the latest 1,000 flows and batches of each of 1,000 contexts.
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {
    /// Check the database of an outbox, too; without a URL that of DATABASE_URL. A URL with a password is refused here
    #[cfg(feature = "outbox")]
    #[arg(long, value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    database_url: Option<String>,
    /// Schema of its tables, as for `meshwork outbox`
    #[cfg(feature = "outbox")]
    #[arg(long, value_name = "NAME", requires = "database_url")]
    schema: Option<String>,
}

impl Doctor {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let target = context.place.target()?;
        let findings = examine(&target, &context.namespace).await;
        let mut findings = findings.map_err(meshwork::Error::from)?;
        let is_open =
            |finding: &Finding| finding.check == "directory" && finding.level == Level::Problem;
        // A directory that others can write to must not be connected to.
        if !findings.iter().any(is_open) {
            findings.push(trial::check(&target, &context.namespace).await);
        }
        findings.push(sandbox().await);
        #[cfg(feature = "outbox")]
        if let Some(url) = &self.database_url {
            let of = OutboxArgs::of_url(url, self.schema.clone());
            findings.extend(findings::of_outbox(&of).await?);
        }
        for finding in &findings {
            if context.out.is_json() {
                context.out.json(finding)?;
            } else {
                say(&mut context.out, finding)?;
            }
        }
        let problem = findings
            .iter()
            .any(|finding| finding.level == Level::Problem);
        Ok(if problem { Exit::FAILED } else { Exit::DONE })
    }
}

/// Returns the isolation that this host offers to scripts. It is found by trying it.
async fn sandbox() -> Finding {
    let finding = |level, what: String, why, remedy: Option<&str>| Finding {
        check: "sandbox",
        level,
        what,
        why,
        remedy: remedy.map(str::to_owned),
    };
    let host = match sandbox_host().await {
        Ok(host) => host,
        Err(error) => {
            let what = format!("the sandbox cannot be tried now: {error}");
            return finding(Level::Hint, what, None, None);
        }
    };
    let landlock = match host.landlock {
        0 => "no Landlock".to_owned(),
        version => format!("Landlock {version}"),
    };
    let gaps = match &*host.gaps() {
        [] => String::new(),
        gaps => format!("; gaps: {}", gaps.join("; ")),
    };
    let Err(why) = host.allows(Profile::Strict) else {
        let what = format!(
            "standard and strict work: namespaces, an own root folder and /proc, {landlock}, filters of system calls"
        );
        return match &host.groups {
            Ok(()) => finding(
                Level::Ok,
                format!("{what}, control groups{gaps}"),
                None,
                None,
            ),
            Err(why) => {
                let what = format!("{what}{gaps}. No control groups: {why}");
                finding(Level::Ok, what, Some(UNCOUNTED), Some(GROUPS))
            }
        };
    };
    let what = match host.allows(Profile::Standard) {
        Ok(()) => {
            format!("standard: {landlock}, filters of system calls{gaps}. strict is refused: {why}")
        }
        Err(missing) => format!("standard and strict are refused: {missing}"),
    };
    finding(Level::Hint, what, Some(WEAK_SANDBOX), Some(NAMESPACES))
}

fn say(out: &mut Out, finding: &Finding) -> Result<(), CommandError> {
    let level = match finding.level {
        Level::Ok => "ok",
        Level::Hint => "hint",
        Level::Warning => "warning",
        Level::Problem => "problem",
    };
    out.line(format_args!(
        "{level:8} {}: {}",
        finding.check,
        // Names of keys are foreign.
        printable(&finding.what)
    ))?;
    if let Some(why) = finding.why {
        out.line(format_args!("         why: {why}"))?;
    }
    if let Some(remedy) = &finding.remedy {
        out.line(format_args!("         do:  {}", printable(remedy)))?;
    }
    Ok(())
}
