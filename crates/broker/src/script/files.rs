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
    "add_child.lua",
    "bananas/claim.lua",
    "bananas/complete.lua",
    "bananas/configure.lua",
    "bananas/delete_dead.lua",
    "bananas/due.lua",
    "bananas/enqueue.lua",
    "bananas/fail.lua",
    "bananas/fire_schedule.lua",
    "bananas/move_to_route.lua",
    "bananas/orphans.lua",
    "bananas/peek.lua",
    "bananas/promote.lua",
    "bananas/put_schedule.lua",
    "bananas/reclaim.lua",
    "bananas/release.lua",
    "bananas/renew.lua",
    "bananas/reroute.lua",
    "bananas/rescue.lua",
    "bananas/retry_dead.lua",
    "bananas/schedules.lua",
    "batch/cancel_batch.lua",
    "batch/create_batch.lua",
    "batch/seal_batch.lua",
    "batch/sweep_batches.lua",
    "cancel.lua",
    "claim.lua",
    "complete.lua",
    "complete_and_claim.lua",
    "context/commit.lua",
    "context/draw.lua",
    "context/read.lua",
    "context/scan.lua",
    "context/take.lua",
    "delete.lua",
    "enqueue.lua",
    "fail.lua",
    "flow/answer.lua",
    "flow/claim.lua",
    "flow/commit.lua",
    "flow/deploy.lua",
    "flow/fire.lua",
    "flow/retry.lua",
    "flow/stop.lua",
    "flow/submit.lua",
    "flow/sweep.lua",
    "isolate.lua",
    "lib/audit.lua",
    "lib/base.lua",
    "lib/claim/admission.lua",
    "lib/claim/claim_fast.lua",
    "lib/claim/claim_lists.lua",
    "lib/claim/claim_slow.lua",
    "lib/claim/claimable.lua",
    "lib/claim/expire_starts.lua",
    "lib/claim/fair_keys.lua",
    "lib/claim/fair_refill.lua",
    "lib/claim/foreign_records.lua",
    "lib/claim/free_slots.lua",
    "lib/claim/key_heads.lua",
    "lib/claim/prefetch_lists.lua",
    "lib/claim/send_home.lua",
    "lib/claim/start_limit.lua",
    "lib/clock_steps.lua",
    "lib/complete/complete_fast.lua",
    "lib/complete/complete_slow.lua",
    "lib/complete/ending.lua",
    "lib/complete/failed_attempts.lua",
    "lib/complete/finalize.lua",
    "lib/complete/publish_result.lua",
    "lib/complete/snooze.lua",
    "lib/dependencies/batch.lua",
    "lib/dependencies/batch_exit.lua",
    "lib/dependencies/batch_join.lua",
    "lib/dependencies/batch_scan.lua",
    "lib/dependencies/dependencies.lua",
    "lib/enqueue/drop_job.lua",
    "lib/enqueue/enqueue_args.lua",
    "lib/enqueue/enqueue_fast.lua",
    "lib/enqueue/enqueue_slow.lua",
    "lib/enqueue/overlap_replace.lua",
    "lib/enqueue/spread.lua",
    "lib/enqueue/unique.lua",
    "lib/enter_database.lua",
    "lib/flow/flow_join.lua",
    "lib/flow/flow_moves.lua",
    "lib/flow/flow_open.lua",
    "lib/flow/flow_renew.lua",
    "lib/flow/flow_store.lua",
    "lib/iso.lua",
    "lib/json.lua",
    "lib/layout_context/bananas_result.lua",
    "lib/layout_context/dual_write.lua",
    "lib/layout_context/element.lua",
    "lib/layout_context/flow_end.lua",
    "lib/layout_context/foreign_prerequisites.lua",
    "lib/layout_context/layout.lua",
    "lib/layout_context/message_end.lua",
    "lib/layout_context/old_entries.lua",
    "lib/layout_context/old_place.lua",
    "lib/layout_context/old_pushes.lua",
    "lib/layout_context/own_queues.lua",
    "lib/layout_context/plain_record.lua",
    "lib/layout_context/prerequisites.lua",
    "lib/layout_context/reply.lua",
    "lib/layout_context/write_error.lua",
    "lib/layout_context/write_record.lua",
    "lib/layout_hero/bananas_result.lua",
    "lib/layout_hero/dual_write.lua",
    "lib/layout_hero/element.lua",
    "lib/layout_hero/flow_end.lua",
    "lib/layout_hero/foreign_prerequisites.lua",
    "lib/layout_hero/layout.lua",
    "lib/layout_hero/message_end.lua",
    "lib/layout_hero/old_entries.lua",
    "lib/layout_hero/old_place.lua",
    "lib/layout_hero/old_pushes.lua",
    "lib/layout_hero/own_queues.lua",
    "lib/layout_hero/plain_record.lua",
    "lib/layout_hero/prerequisites.lua",
    "lib/layout_hero/reply.lua",
    "lib/layout_hero/write_error.lua",
    "lib/layout_hero/write_record.lua",
    "lib/objects/version.lua",
    "lib/orphans/canonical_lists.lua",
    "lib/orphans/check.lua",
    "lib/orphans/list.lua",
    "lib/orphans/rule.lua",
    "lib/orphans/scan.lua",
    "lib/orphans/track.lua",
    "lib/prelude.lua",
    "lib/protocols/bananas.lua",
    "lib/protocols/bananas_record.lua",
    "lib/protocols/import_job.lua",
    "lib/protocols/nooble.lua",
    "lib/protocols/nooble_end.lua",
    "lib/queue/alerts.lua",
    "lib/queue/cancel_requests.lua",
    "lib/queue/cancel_waiting.lua",
    "lib/queue/queue_settings.lua",
    "lib/queue/remove_from_lists.lua",
    "lib/queue/update_settings.lua",
    "lib/queue/wake_scheduler.lua",
    "lib/read_ids.lua",
    "lib/record_queues.lua",
    "lib/schedule/write_schedule.lua",
    "lib/telemetry.lua",
    "log.lua",
    "migrate.lua",
    "nooble/complete.lua",
    "nooble/deregister.lua",
    "nooble/fail.lua",
    "nooble/promote.lua",
    "nooble/receive.lua",
    "nooble/reclaim.lua",
    "nooble/release.lua",
    "nooble/renew.lua",
    "nooble/retry_dead.lua",
    "nooble/saga_step.lua",
    "nooble/store_reply.lua",
    "nooble/trim.lua",
    "objects/delete_object.lua",
    "objects/read_objects.lua",
    "objects/save_object.lua",
    "orphans/check_orphans.lua",
    "orphans/track_orphans.lua",
    "promote.lua",
    "prune.lua",
    "queue/alert.lua",
    "queue/configure.lua",
    "queue/copy_counters.lua",
    "queue/spread_keys.lua",
    "reclaim.lua",
    "release.lua",
    "renew.lua",
    "resolve_dependents.lua",
    "retry.lua",
    "run_now.lua",
    "schedule/due_schedules.lua",
    "schedule/fire_schedules.lua",
    "schedule/put_schedule.lua",
    "set_job.lua",
    "transfer/export_bananas.lua",
    "transfer/import_bananas.lua",
    "transfer/restore.lua",
    "worker/control.lua",
    "worker/deregister.lua",
    "worker/expire_workers.lua",
    "worker/move_away.lua",
    "worker/register.lua",
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
