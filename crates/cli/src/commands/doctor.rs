//! `meshwork doctor`.

use meshwork_broker::doctor::{Finding, Level, examine};

use crate::app::App;
use crate::error::CommandError;
use crate::exit::Exit;
use crate::out::{Out, printable};

/// Check the server, or the data directory, and print advice. Exits with 1 if there is a problem
#[derive(Debug, clap::Args)]
pub(crate) struct Doctor {}

impl Doctor {
    pub(crate) async fn run(self, context: &mut App) -> Result<Exit, CommandError> {
        let target = context.place.target()?;
        let findings = examine(&target, &context.namespace).await;
        let findings = findings.map_err(meshwork::Error::from)?;
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
