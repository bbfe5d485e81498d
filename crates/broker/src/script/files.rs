//! Texts of the scripts in `lua/`, which are built in. With the feature `scripts-from-files`, which only test crates
//! enable, a debug build reads them from the source folder at its start. A changed script then needs no compilation.

/// Names the built-in files.
macro_rules! files {
    ($($path:literal),+ $(,)?) => {
        /// The built-in files.
        #[cfg(test)]
        pub(super) const BUILT_IN: &[&str] = &[$($path),+];

        /// Returns the text of a file of `lua/`.
        #[cfg(not(all(feature = "scripts-from-files", debug_assertions)))]
        pub(super) fn text(path: &str) -> Option<&'static str> {
            match path {
                $($path => Some(include_str!(concat!("../lua/", $path))),)+
                _ => None,
            }
        }
    };
}

files![
    "orphans/track_orphans.lua",
    "queue/alert.lua",
    "bananas/rescue.lua",
    "bananas/claim.lua",
    "bananas/configure.lua",
    "bananas/put_schedule.lua",
    "bananas/schedules.lua",
    "bananas/due.lua",
    "bananas/enqueue.lua",
    "bananas/fail.lua",
    "bananas/complete.lua",
    "bananas/fire_schedule.lua",
    "bananas/delete_dead.lua",
    "bananas/reroute.lua",
    "bananas/move_to_route.lua",
    "bananas/peek.lua",
    "bananas/promote.lua",
    "bananas/reclaim.lua",
    "bananas/release.lua",
    "bananas/renew.lua",
    "bananas/retry_dead.lua",
    "bananas/orphans.lua",
    "cancel.lua",
    "batch/cancel_batch.lua",
    "claim.lua",
    "queue/configure.lua",
    "context/commit.lua",
    "context/draw.lua",
    "context/read.lua",
    "context/scan.lua",
    "context/take.lua",
    "worker/control.lua",
    "delete.lua",
    "schedule/due_schedules.lua",
    "enqueue.lua",
    "complete_and_claim.lua",
    "fail.lua",
    "complete.lua",
    "flow/answer.lua",
    "flow/claim.lua",
    "flow/commit.lua",
    "flow/retry.lua",
    "flow/stop.lua",
    "flow/submit.lua",
    "flow/sweep.lua",
    "transfer/export_bananas.lua",
    "transfer/restore.lua",
    "isolate.lua",
    "worker/deregister.lua",
    "lib/admission.lua",
    "lib/alerts.lua",
    "lib/audit.lua",
    "lib/bananas.lua",
    "lib/bananas_record.lua",
    "lib/bananas_result.lua",
    "lib/base.lua",
    "lib/batch.lua",
    "lib/batch_exit.lua",
    "lib/batch_join.lua",
    "lib/batch_scan.lua",
    "lib/cancel_requests.lua",
    "lib/cancel_waiting.lua",
    "lib/canonical_lists.lua",
    "lib/claim_fast.lua",
    "lib/claim_lists.lua",
    "lib/claim_slow.lua",
    "lib/claimable.lua",
    "lib/clock_steps.lua",
    "lib/complete_fast.lua",
    "lib/complete_slow.lua",
    "lib/context/bananas_result.lua",
    "lib/context/dual_write.lua",
    "lib/context/element.lua",
    "lib/context/flow_end.lua",
    "lib/context/foreign_prerequisites.lua",
    "lib/context/layout.lua",
    "lib/context/message_end.lua",
    "lib/context/old_entries.lua",
    "lib/context/old_place.lua",
    "lib/context/old_pushes.lua",
    "lib/context/own_queues.lua",
    "lib/context/plain_record.lua",
    "lib/context/prerequisites.lua",
    "lib/context/reply.lua",
    "lib/context/write_error.lua",
    "lib/context/write_record.lua",
    "lib/count_foreign.lua",
    "lib/dependencies.lua",
    "lib/drop_job.lua",
    "lib/dual_write.lua",
    "lib/element.lua",
    "lib/ending.lua",
    "lib/enter_database.lua",
    "lib/enqueue_args.lua",
    "lib/enqueue_fast.lua",
    "lib/enqueue_slow.lua",
    "lib/expire_starts.lua",
    "lib/fair_keys.lua",
    "lib/fair_refill.lua",
    "lib/finalize.lua",
    "lib/flow_end.lua",
    "lib/flow_join.lua",
    "lib/flow_moves.lua",
    "lib/flow_renew.lua",
    "lib/flow_store.lua",
    "lib/foreign_prerequisites.lua",
    "lib/foreign_records.lua",
    "lib/free_slots.lua",
    "lib/import_job.lua",
    "lib/json.lua",
    "lib/layout.lua",
    "lib/legacy_lookup.lua",
    "lib/legacy_rescue.lua",
    "lib/message_end.lua",
    "lib/nooble.lua",
    "lib/nooble_end.lua",
    "lib/old_entries.lua",
    "lib/old_place.lua",
    "lib/old_pushes.lua",
    "lib/overlap_replace.lua",
    "lib/own_queues.lua",
    "lib/plain_record.lua",
    "lib/prefetch_lists.lua",
    "lib/prelude.lua",
    "lib/prerequisites.lua",
    "lib/publish_result.lua",
    "lib/queue_settings.lua",
    "lib/read_ids.lua",
    "lib/record_queues.lua",
    "lib/remove_from_lists.lua",
    "lib/reply.lua",
    "lib/send_home.lua",
    "lib/snooze.lua",
    "lib/stale.lua",
    "lib/start_limit.lua",
    "lib/telemetry.lua",
    "lib/unique.lua",
    "lib/update_settings.lua",
    "lib/wake_scheduler.lua",
    "lib/write_error.lua",
    "lib/write_record.lua",
    "log.lua",
    "migrate.lua",
    "nooble/fail.lua",
    "nooble/complete.lua",
    "nooble/store_reply.lua",
    "nooble/deregister.lua",
    "nooble/promote.lua",
    "nooble/receive.lua",
    "nooble/reclaim.lua",
    "nooble/release.lua",
    "nooble/renew.lua",
    "nooble/retry_dead.lua",
    "nooble/saga_step.lua",
    "nooble/trim.lua",
    "batch/create_batch.lua",
    "worker/expire_workers.lua",
    "worker/register.lua",
    "promote.lua",
    "prune.lua",
    "reclaim.lua",
    "release.lua",
    "renew.lua",
    "retry.lua",
    "run_now.lua",
    "schedule/put_schedule.lua",
    "batch/seal_batch.lua",
    "resolve_dependents.lua",
    "add_child.lua",
    "transfer/import_bananas.lua",
    "batch/sweep_batches.lua",
    "schedule/fire_schedules.lua",
    "orphans/check_orphans.lua",
];

#[cfg(all(test, feature = "scripts-from-files", debug_assertions))]
pub(super) use from_source::all;
#[cfg(all(feature = "scripts-from-files", debug_assertions))]
pub(super) use from_source::text;

#[cfg(all(feature = "scripts-from-files", debug_assertions))]
mod from_source {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::sync::LazyLock;
    use std::{fs, io};

    const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/lua");

    /// All files, by their path below the folder.
    static ALL: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
        let mut all = BTreeMap::new();
        if let Err(error) = read(Path::new(FOLDER), "", &mut all) {
            panic!(
                "{FOLDER}: {error}; a build with the feature scripts-from-files runs only beside its sources: \
                 build the package that you want by itself, `cargo build -p meshwork-cli`"
            );
        }
        all
    });

    /// Returns the text of a file of `lua/`, as it was at the first read.
    pub(in super::super) fn text(path: &str) -> Option<&'static str> {
        ALL.get(path).map(String::as_str)
    }

    /// Returns the files of the folder.
    #[cfg(test)]
    pub(in super::super) fn all() -> impl Iterator<Item = &'static str> {
        ALL.keys().map(String::as_str)
    }

    fn read(folder: &Path, below: &str, all: &mut BTreeMap<String, String>) -> io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let path = format!("{below}{}", entry.file_name().to_string_lossy());
            if entry.file_type()?.is_dir() {
                read(&entry.path(), &format!("{path}/"), all)?;
            } else if path.ends_with(".lua") {
                all.insert(path, fs::read_to_string(entry.path())?);
            }
        }
        Ok(())
    }
}
